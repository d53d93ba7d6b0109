#include "libalpa/program/order/races.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/program/order/step_walk.h"
#include "libalpa/program/order/wrong_program.h"

namespace alpa {
namespace {

/// Goes through the schedule of a mesh, three times where steps may overlap each other (what is for the step
/// before first acts in the second), with vector clocks (as race
/// detectors do: FastTrack, PLDI'09): what is known to be done on each lane before an instruction starts.
/// Looks at the contents of every slot too.
class Races {
 public:
  Races(const Program& program, MeshIndex mesh, const Dependences& waits)
      : program_(program),
        mesh_(program.meshes[mesh]),
        index_(mesh),
        waits_(waits),
        runs_(mesh_, program.micro_batches),
        lanes_(mesh_.lanes.size()) {
    const std::size_t micro_batches = static_cast<std::size_t>(std::max(program.micro_batches, 1));
    for (const Segment& segment : mesh_.segments)
      marks_.emplace_back(segment.instructions.size(), std::vector<Clock>{});
    for (std::size_t s = 0; s < waits.size(); ++s)
      for (const auto& of : waits[s])
        for (const Dependence& wait : of)
          if (wait.occasion != Occasion::left)
            marks_[wait.segment][wait.instruction].resize(
                2 * (mesh_.segments[wait.segment].kind == SegmentKind::update ? 1 : micro_batches));
    for (const Buffer& buffer : mesh_.buffers)
      places_.push_back(std::vector<Place>(
          static_cast<std::size_t>(buffer.residence == Residence::segment ? 1 : buffer.slots)));
    for (const BufferIndex b : mesh_.buffers.indices())
      if (mesh_.buffers[b].residence == Residence::state) places_[b][0].holds = kAnything;
    find_overlaps();
    clocks_.assign(lanes_, Clock(lanes_, 0));
    left_.assign(program.transfers.size(), -1);
    position_.assign(lanes_, 0);
    of_segments_.assign(lanes_, {});
  }

  void run() {
    for (steps_before_ = 0; steps_before_ < (program_.defers_updates ? 3 : 1); ++steps_before_)
      for (std::size_t r = 0; r < mesh_.schedule.size(); ++r) {
        const SegmentRun& run = mesh_.schedule[r];
        const std::vector<Instruction>& instructions = mesh_.segment_of(run).instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) step(r, i, instructions[i]);
      }
    for (const BufferIndex b : mesh_.buffers.indices())
      if (mesh_.buffers[b].residence == Residence::state && places_[b][0].holds == kNothing)
        refuse_program(index_,
                       fmt::format("{} ends the step as its owners alone have it", buffer_words(mesh_, b)));
  }

 private:
  /// Those of a step are kept until the next has ended.
  static std::size_t mark_of(int micro_batch, int step) {
    return 2 * static_cast<std::size_t>(std::max(micro_batch, 0)) + static_cast<std::size_t>(step % 2);
  }

  using Clock = std::vector<int>;  ///< [lane] instructions of it that are known to be done

  /// What an instruction did to a place, by its lane and its number there.
  struct Touch {
    int lane = -1, position = 0;  ///< position: from 1
    std::size_t run = 0, instruction = 0;
    int step = 0;
    bool is_of_run(const Touch& other) const { return run == other.run && step == other.step; }
  };
  /// A slot of a buffer, or of several that have slots in common.
  struct Place {
    Touch written;
    std::vector<Touch> read;  ///< since then, the last of each lane
    int holds = kNothing;     ///< micro-batch
    BufferIndex of;           ///< which buffer's
  };
  static constexpr int kNothing = -3, kAnything = -2;

  [[noreturn]] void wrong(std::size_t run, std::size_t instruction, const std::string& what) const {
    refuse_program(index_, instruction_words(mesh_, mesh_.schedule[run], instruction) + " " + what);
  }

  void step(std::size_t r, std::size_t i, const Instruction& instruction) {
    const SegmentRun& run = mesh_.schedule[r];
    const std::size_t lane = static_cast<std::size_t>(instruction.lane);
    Clock& clock = clocks_[lane];
    const Send* send = std::get_if<Send>(&instruction.body);
    for (const Dependence& wait : waits_[run.segment][i]) {
      int meant = runs_.micro_batch_of(wait, static_cast<int>(r));
      const bool is_before = meant < 0;  // in the step before
      if (is_before && (steps_before_ == 0 || wait.occasion == Occasion::left)) continue;
      if (is_before) meant = runs_.micro_batch_of_step_before(wait, static_cast<int>(r));
      if (wait.occasion == Occasion::left) {
        int& left = left_[send->transfer];
        left = std::max(left, meant);
        continue;
      }
      const Clock& done = marks_[wait.segment][wait.instruction][mark_of(meant, steps_before_ - is_before)];
      if (done.empty())
        wrong(r, i,
              fmt::format("comes before instruction {} of the {} of micro-batch {}, for which it waits{}",
                          wait.instruction, segment_text(mesh_.segments[wait.segment]), meant,
                          wait.lag > 0 ? ": both micro-batches are in the same slot" : ""));
      for (std::size_t l = 0; l < lanes_; ++l) clock[l] = std::max(clock[l], done[l]);
    }
    const bool is_of_step = acts(instruction.when, run.micro_batch, program_.micro_batches) &&
                            (instruction.when != When::of_step_before || steps_before_ > 0);
    if (is_of_step || instruction.when == When::norm_binds) {
      const Touch now{instruction.lane, position_[lane] + 1, r, i, steps_before_};
      for (const BufferIndex b : buffers_read(instruction)) touch(b, now, clock, false);
      for (const BufferIndex b : buffers_written(instruction)) touch(b, now, clock, true);
      if (send && send->packed >= 0) {
        const std::int64_t before = run.micro_batch - mesh_.buffers[send->packed].slots;
        if (before >= 0 && before > left_[send->transfer])
          wrong(
              r, i,
              fmt::format("packs into memory that its message of micro-batch {} may not have left", before));
      }
    }
    clock[lane] = ++position_[lane];
    auto& mark = marks_[run.segment][i];
    if (!mark.empty()) mark[mark_of(run.micro_batch, steps_before_)] = clock;
  }

  /// Of views, by where they lie, as of all else that touches what they are parts of.
  void find_overlaps() {
    for (const BufferIndex view : mesh_.buffers.indices()) {
      const Buffer& part = mesh_.buffers[view];
      if (part.view_of < 0) continue;
      for (const BufferIndex b : mesh_.buffers.indices()) {
        const Buffer& other = mesh_.buffers[b];
        if (b == view || mesh_.whole(b) != part.view_of || other.offset >= part.offset + part.bytes ||
            part.offset >= other.offset + other.bytes)
          continue;
        overlaps_[view].push_back(b);
        if (other.view_of < 0) overlaps_[b].push_back(view);
      }
    }
  }

  void touch(BufferIndex b, const Touch& now, const Clock& clock, bool writes) {
    const Buffer& buffer = mesh_.buffers[b];
    const SegmentRun& run = mesh_.schedule[now.run];
    const bool of_segment = buffer.residence == Residence::segment;
    const auto slot = static_cast<std::size_t>(of_segment ? 0 : mesh_.slot(b, run.micro_batch));
    Place& place = places_[buffer.slots_in < 0 ? b : buffer.slots_in][slot];
    const auto ordered = [&](const Touch& other) {
      return other.lane < 0 || other.lane == now.lane || clock[other.lane] >= other.position;
    };
    const auto unordered = [&](const Touch& other) {
      wrong(
          now.run, now.instruction,
          fmt::format("{} {} while {} may still use it", writes ? "writes" : "reads", buffer_words(mesh_, b),
                      instruction_words(mesh_, mesh_.schedule[other.run], other.instruction)));
    };
    if (of_segment) {
      // All that one run of a segment does with such buffers comes before all that another does.
      if (!segments_run_.is_of_run(now)) {
        segments_run_ = now;
        for (auto& lane : of_segments_) lane.first = lane.second;
      }
      for (const auto& [before, last] : of_segments_)
        if (!ordered(before)) unordered(before);
      of_segments_[now.lane].second = now;
      if (place.written.lane >= 0 && !place.written.is_of_run(now)) place = {};
    }
    const int micro_batch = buffer.residence == Residence::micro_batch ? run.micro_batch : kAnything;
    if (!writes) {
      const auto need = [&](const Place& written, BufferIndex what) {
        if (written.holds == kNothing)
          wrong(now.run, now.instruction,
                fmt::format("reads {} before anything wrote it", buffer_words(mesh_, what)));
      };
      need(place, b);
      // Of a whole the first of its views that is written is not enough.
      if (const auto parts = overlaps_.find(b); buffer.view_of < 0 && parts != overlaps_.end())
        for (const BufferIndex part : parts->second) need(places_[part][slot], part);
      if (micro_batch >= 0 && (place.holds != micro_batch || place.of != b))
        wrong(now.run, now.instruction,
              fmt::format("reads {}, where {}micro-batch {} is in the same slot", buffer_words(mesh_, b),
                          place.of == b ? "" : buffer_words(mesh_, place.of) + " of ", place.holds));
    }
    const auto wait_for = [&](const Place& other) {
      if (!ordered(other.written)) unordered(other.written);
      for (const Touch& reader : other.read)
        if (writes && !ordered(reader)) unordered(reader);
    };
    wait_for(place);
    if (const auto others = overlaps_.find(b); others != overlaps_.end())
      for (const BufferIndex other : others->second) {
        wait_for(places_[other][slot]);
        if (writes) {
          // What its owner alone has is nothing on other devices, until that goes to them.
          const bool is_everywhere =
              buffer.owner.is_everybody() || buffer.owner == mesh_.buffers[other].owner;
          places_[other][slot].holds = is_everywhere ? micro_batch : kNothing;
          places_[other][slot].of = other;
        }
      }
    if (writes) {
      place.read.clear();
      place.written = now;
      place.holds = micro_batch;
      place.of = b;
      return;
    }
    const auto same = std::ranges::find(place.read, now.lane, &Touch::lane);
    if (same == place.read.end())
      place.read.push_back(now);
    else
      *same = now;
  }

  const Program& program_;
  const MeshProgram& mesh_;
  MeshIndex index_;
  const Dependences& waits_;
  RunTable runs_;
  std::size_t lanes_;
  std::vector<std::vector<std::vector<Clock>>> marks_;  ///< [segment][instruction][mark_of]
  Indexed<BufferIndex, std::vector<Place>> places_;     ///< [buffer][slot]
  std::map<BufferIndex, std::vector<BufferIndex>> overlaps_;
  std::vector<Clock> clocks_;  ///< [lane]
  std::vector<int> left_;      ///< [transfer] the last micro-batch whose message is known to have left
  std::vector<int> position_;  ///< [lane]
  std::vector<std::pair<Touch, Touch>> of_segments_;  ///< [lane] last use before this run, and of this run
  Touch segments_run_{-1, 0, static_cast<std::size_t>(-1)};
  int steps_before_ = 0;
};

}  // namespace

void check_races(const Program& program, MeshIndex mesh, const Dependences& waits) {
  Races(program, mesh, waits).run();
}

}  // namespace alpa
