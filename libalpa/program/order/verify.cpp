#include "libalpa/program/order/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/program/order/step_walk.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(MeshIndex mesh, const std::string& what) {
  throw Error(ErrorKind::run_time, fmt::format("the program of mesh {} is wrong: {}", mesh, what),
              "make the plan again with alpa-plan; if that does not help, report the plan file");
}

/// "instruction 12 of the backward of stage 1 of micro-batch 3"
std::string words(const MeshProgram& mesh, const SegmentRun& run, std::size_t instruction) {
  const std::string of = run.micro_batch < 0 ? "" : fmt::format(" of micro-batch {}", run.micro_batch);
  return fmt::format("instruction {} of the {}{}", instruction, segment_text(mesh.segment_of(run)), of);
}

std::string words(const MeshProgram& mesh, BufferIndex buffer) {
  return fmt::format("buffer {} ({})", buffer, mesh.buffers[buffer].name);
}

/// Every micro-batch passes the segments of a stage in the order in which they are listed, once; the update
/// is last.
void check_schedule(const MeshProgram& program, MeshIndex mesh, int micro_batches) {
  const auto& runs = program.schedule;
  for (const SegmentRun& run : runs)
    if (run.segment < 0 || run.segment >= std::ssize(program.segments))
      refuse(mesh, fmt::format("its schedule has a segment {}", run.segment));
  const auto is_update = [&](int segment) { return program.segments[segment].kind == SegmentKind::update; };
  if (runs.empty() || !is_update(runs.back().segment) || runs.back().micro_batch != -1)
    refuse(mesh, "its schedule does not end with the update");
  std::vector<int> before(program.segments.size(), -1);  // the segment before it of the same stage
  std::map<int, int> last_of_stage;
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) {
    if (is_update(s)) continue;
    const auto [last, first] = last_of_stage.insert({program.segments[s].stage, s});
    if (!first) before[s] = std::exchange(last->second, s);
  }
  std::vector<int> done(program.segments.size());  // micro-batches: sums and slots go by their order
  for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
    const auto [segment, m] = runs[r];
    const std::string name = segment_text(program.segment_of(runs[r]));
    if (m < 0 || m >= micro_batches || is_update(segment))
      refuse(mesh, fmt::format("its schedule has {} of micro-batch {}", name, m));
    const int earlier = before[segment];
    if (done[segment]++ != m || (earlier >= 0 && done[earlier] <= m))
      refuse(mesh, fmt::format("its schedule has {} of micro-batch {} out of turn", name, m));
  }
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s)
    if (const int runs_of = done[s]; !is_update(s) && runs_of != micro_batches)
      refuse(mesh, fmt::format("its schedule leaves {} of micro-batch {} out",
                               segment_text(program.segments[s]), runs_of));
}

/// A view lies within each slot of what it is a view of, and lasts as long.
void check_view(const MeshProgram& program, MeshIndex mesh, BufferIndex b) {
  const Buffer& view = program.buffers[b];
  if (view.view_of >= std::ssize(program.buffers))
    refuse(mesh, fmt::format("{} is a view of buffer {}", words(program, b), view.view_of));
  const Buffer& of = program.buffers[view.view_of];
  const std::int64_t begin = view.offset - of.offset;
  if (of.view_of >= 0 || begin < 0 || begin + view.bytes > of.bytes || view.slots != of.slots ||
      view.space != of.space || view.residence != of.residence)
    refuse(mesh, fmt::format("{} is no part of {}", words(program, b), words(program, view.view_of)));
}

/// Where the buffers lie: within the arena, and none that outlasts a segment shares a byte with another that
/// is no view of it. Those of one segment may, which check_sharing() looks at.
void check_places(const MeshProgram& program, MeshIndex mesh) {
  Indexed<BufferIndex, bool> used(program.buffers.size());
  for (const BufferIndex b : used.indices()) used[b] = program.buffers[b].residence != Residence::segment;
  for (const Segment& segment : program.segments)
    for (const Instruction& instruction : segment.instructions)
      for (const BufferIndex b : buffers_touched(instruction)) used[b] = true;
  std::vector<BufferIndex> order;
  for (const BufferIndex b : program.buffers.indices()) {
    const Buffer& buffer = program.buffers[b];
    if (!used[b]) continue;
    if (buffer.slots < 1) refuse(mesh, fmt::format("buffer {} has no slot", b));
    if (buffer.view_of >= 0) {
      check_view(program, mesh, b);
      continue;
    }
    const std::int64_t arena =
        buffer.space == MemorySpace::device ? program.memory.total : program.host_bytes;
    if (buffer.offset < 0 || buffer.offset + buffer.bytes * buffer.slots > arena)
      refuse(mesh, fmt::format("{} lies outside the arena", words(program, b)));
    order.push_back(b);
  }
  std::ranges::sort(order, {}, [&](BufferIndex b) {
    return std::pair(program.buffers[b].space, program.buffers[b].offset);
  });
  const auto end = [&](BufferIndex b) {
    return program.buffers[b].offset + program.buffers[b].bytes * program.buffers[b].slots;
  };
  const auto in_segment = [&](BufferIndex b) { return program.buffers[b].residence == Residence::segment; };
  std::optional<BufferIndex> reaching, lasting;  // of those before: that which ends last, of all and of these
  std::optional<MemorySpace> space;
  for (const BufferIndex b : order) {
    if (space != program.buffers[b].space) reaching = lasting = std::nullopt;
    space = program.buffers[b].space;
    const std::optional<BufferIndex>& other = in_segment(b) ? lasting : reaching;
    if (other && end(*other) > program.buffers[b].offset)
      refuse(mesh, fmt::format("{} and {} share memory", words(program, *other), words(program, b)));
    if (!reaching || end(b) > end(*reaching)) reaching = b;
    if (!in_segment(b) && (!lasting || end(b) > end(*lasting))) lasting = b;
  }
}

/// Buffers of one segment share bytes only where all that is done with one surely comes before all that is
/// done with the other.
void check_sharing(const MeshProgram& program, MeshIndex mesh, int segment, const Dependences& waits) {
  const std::vector<Instruction>& instructions = program.segments[segment].instructions;
  std::map<BufferIndex, std::vector<int>> touched;  // instructions
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
    const Instruction& instruction = instructions[i];
    for (const BufferIndex b : buffers_touched(instruction))
      if (program.buffers[b].residence == Residence::segment)
        if (std::vector<int>& of = touched[b]; of.empty() || of.back() != i) of.push_back(i);
  }
  const RunOrder order(program, waits, segment);
  const auto all_before = [&](const std::vector<int>& some, const std::vector<int>& others) {
    return std::ranges::all_of(others, [&](int then) {
      return std::ranges::all_of(some, [&](int first) { return order.before(first, then); });
    });
  };
  std::vector<BufferIndex> by_place;
  for (const auto& [b, uses] : touched) by_place.push_back(b);
  const auto& buffers = program.buffers;
  const auto place = [&](BufferIndex b) { return std::pair(buffers[b].space, buffers[b].offset); };
  std::ranges::sort(by_place, {}, place);
  for (std::size_t x = 0; x < by_place.size(); ++x) {
    const Buffer& a = buffers[by_place[x]];
    for (std::size_t y = x + 1; y < by_place.size(); ++y) {
      const Buffer& b = buffers[by_place[y]];
      if (place(by_place[y]) >= std::pair(a.space, a.offset + a.bytes)) break;
      if (a.view_of >= 0 || b.view_of >= 0) continue;  // which Races looks at
      const std::vector<int>&some = touched[by_place[x]], &others = touched[by_place[y]];
      if (!all_before(some, others) && !all_before(others, some))
        refuse(mesh,
               fmt::format("{} and {} share memory in {}, and nothing keeps instructions {} and {} apart",
                           words(program, by_place[x]), words(program, by_place[y]),
                           segment_text(program.segments[segment]), some.front(), others.front()));
    }
  }
}

/// Goes once through the schedule of a mesh with vector clocks (as race detectors do: FastTrack, PLDI'09):
/// what is known to be done on each lane before an instruction starts. Looks at the contents of every slot
/// too.
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
                mesh_.segments[wait.segment].kind == SegmentKind::update ? 1 : micro_batches);
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
    for (std::size_t r = 0; r < mesh_.schedule.size(); ++r) {
      const SegmentRun& run = mesh_.schedule[r];
      const std::vector<Instruction>& instructions = mesh_.segment_of(run).instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) step(r, i, instructions[i]);
    }
  }

 private:
  using Clock = std::vector<int>;  ///< [lane] instructions of it that are known to be done

  /// What an instruction did to a place, by its lane and its number there.
  struct Touch {
    int lane = -1, position = 0;  ///< position: from 1
    std::size_t run = 0, instruction = 0;
  };
  /// A slot of a buffer.
  struct Place {
    Touch written;
    std::vector<Touch> read;  ///< since then, the last of each lane
    int holds = kNothing;     ///< micro-batch
  };
  static constexpr int kNothing = -3, kAnything = -2;

  [[noreturn]] void wrong(std::size_t run, std::size_t instruction, const std::string& what) const {
    refuse(index_, words(mesh_, mesh_.schedule[run], instruction) + " " + what);
  }

  void step(std::size_t r, std::size_t i, const Instruction& instruction) {
    const SegmentRun& run = mesh_.schedule[r];
    const std::size_t lane = static_cast<std::size_t>(instruction.lane);
    Clock& clock = clocks_[lane];
    const Send* send = std::get_if<Send>(&instruction.body);
    for (const Dependence& wait : waits_[run.segment][i]) {
      const int meant = runs_.micro_batch_of(wait, static_cast<int>(r));
      if (meant < 0) continue;
      if (wait.occasion == Occasion::left) {
        int& left = left_[send->transfer];
        left = std::max(left, meant);
        continue;
      }
      const Clock& done = marks_[wait.segment][wait.instruction][meant];
      if (done.empty())
        wrong(r, i,
              fmt::format("comes before instruction {} of the {} of micro-batch {}, for which it waits{}",
                          wait.instruction, segment_text(mesh_.segments[wait.segment]), meant,
                          wait.lag > 0 ? ": both micro-batches are in the same slot" : ""));
      for (std::size_t l = 0; l < lanes_; ++l) clock[l] = std::max(clock[l], done[l]);
    }
    if (acts(instruction.when, run.micro_batch, program_.micro_batches)) {
      const Touch now{instruction.lane, position_[lane] + 1, r, i};
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
    if (!mark.empty()) mark[std::max(run.micro_batch, 0)] = clock;
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
    const int slot = of_segment ? 0 : static_cast<int>(std::max(run.micro_batch, 0) % buffer.slots);
    Place& place = places_[b][slot];
    const auto ordered = [&](const Touch& other) {
      return other.lane < 0 || other.lane == now.lane || clock[other.lane] >= other.position;
    };
    const auto unordered = [&](const Touch& other) {
      wrong(now.run, now.instruction,
            fmt::format("{} {} while {} may still use it", writes ? "writes" : "reads", words(mesh_, b),
                        words(mesh_, mesh_.schedule[other.run], other.instruction)));
    };
    if (of_segment) {
      // All that one run of a segment does with such buffers comes before all that another does.
      if (segments_run_ != now.run) {
        segments_run_ = now.run;
        for (auto& lane : of_segments_) lane.first = lane.second;
      }
      for (const auto& [before, last] : of_segments_)
        if (!ordered(before)) unordered(before);
      of_segments_[now.lane].second = now;
      if (place.written.lane >= 0 && place.written.run != now.run) place = {};
    }
    const int micro_batch = buffer.residence == Residence::micro_batch ? run.micro_batch : kAnything;
    if (!writes) {
      if (place.holds == kNothing)
        wrong(now.run, now.instruction, fmt::format("reads {} before anything wrote it", words(mesh_, b)));
      if (place.holds != micro_batch && micro_batch >= 0)
        wrong(
            now.run, now.instruction,
            fmt::format("reads {}, where micro-batch {} is in the same slot", words(mesh_, b), place.holds));
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
        if (writes) places_[other][slot].holds = micro_batch;
      }
    if (writes) {
      place.read.clear();
      place.written = now;
      place.holds = micro_batch;
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
  std::vector<std::vector<std::vector<Clock>>> marks_;  ///< [segment][instruction][micro-batch]
  Indexed<BufferIndex, std::vector<Place>> places_;     ///< [buffer][slot]
  std::map<BufferIndex, std::vector<BufferIndex>> overlaps_;
  std::vector<Clock> clocks_;  ///< [lane]
  std::vector<int> left_;      ///< [transfer] the last micro-batch whose message is known to have left
  std::vector<int> position_;  ///< [lane]
  std::vector<std::pair<Touch, Touch>> of_segments_;  ///< [lane] last use before this run, and of this run
  std::size_t segments_run_ = static_cast<std::size_t>(-1);
};

/// Every transfer arrives as often as it leaves, and in the same order on each channel between two meshes.
void check_messages(const Program& program) {
  // By the meshes and the channel.
  std::map<std::tuple<MeshIndex, MeshIndex, int>, std::vector<std::pair<int, int>>> sent, received;
  const auto mesh_of = [&](const DeviceMesh& mesh) {
    return MeshIndex(std::ranges::find(program.meshes, mesh.first_device,
                                       [](const MeshProgram& m) { return m.mesh.first_device; }) -
                     program.meshes.begin());
  };
  for (const MeshIndex m : program.meshes.indices())
    for (const SegmentRun& run : program.meshes[m].schedule) {
      const std::vector<Instruction>& instructions = program.meshes[m].segment_of(run).instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        const auto note = [&](auto& list, int transfer) {
          if (transfer < 0 || transfer >= std::ssize(program.transfers))
            refuse(m, words(program.meshes[m], run, i) + fmt::format(" is of no transfer: {}", transfer));
          const StageTransfer& t = program.transfers[transfer];
          list[{mesh_of(t.from_mesh), mesh_of(t.to_mesh), t.channel}].push_back({transfer, run.micro_batch});
        };
        if (const auto* send = std::get_if<Send>(&instructions[i].body)) note(sent, send->transfer);
        if (const auto* receive = std::get_if<Receive>(&instructions[i].body))
          note(received, receive->transfer);
      }
    }
  std::vector<std::pair<int, int>> times(program.transfers.size());  // sent and received
  for (const auto& [ends, messages] : sent)
    for (const auto& message : messages) ++times[message.first].first;
  for (const auto& [ends, messages] : received)
    for (const auto& message : messages) ++times[message.first].second;
  for (std::size_t t = 0; t < times.size(); ++t) {
    const auto [leaves, arrives] = times[t];
    if (leaves == arrives) continue;
    const Transfer& transfer = program.transfers[t];
    refuse(mesh_of(leaves < arrives ? transfer.to_mesh : transfer.from_mesh),
           fmt::format("transfer {} is sent {} times and received {} times", t, leaves, arrives));
  }
  for (const auto& [ends, messages] : received)
    for (std::size_t k = 0; k < messages.size(); ++k)
      if (const auto& other = sent[ends][k]; messages[k] != other)
        refuse(std::get<1>(ends),
               fmt::format("it receives transfer {} of micro-batch {} where {} of {} arrives",
                           messages[k].first, messages[k].second, other.first, other.second));
}

/// Whether the step comes to its end where every rank does everything in the listed order. Lanes wait for
/// less: what they wait for is listed before.
void check_end(const Program& program, const std::vector<Dependences>& waits) {
  StepWalk walk(program, waits, Lanes::joined);
  std::vector<StepWalk::Turn> ready = walk.take_ready();
  while (!ready.empty()) {
    const StepWalk::Turn turn = ready.back();
    ready.pop_back();
    walk.done(turn, 0);
    for (const StepWalk::Turn& next : walk.take_ready()) ready.push_back(next);
  }
  const auto stuck = walk.stuck();
  if (!stuck) return;
  const MeshProgram& mesh = program.meshes[stuck->mesh];
  refuse(stuck->mesh,
         fmt::format("it waits for ever at {}",
                     words(mesh, mesh.schedule[stuck->run], static_cast<std::size_t>(stuck->instruction))));
}

}  // namespace

void verify(const Program& program, const std::vector<Dependences>& waits) {
  for (const MeshIndex m : program.meshes.indices())
    check_schedule(program.meshes[m], m, program.micro_batches);
  check_messages(program);
  for (const MeshIndex m : program.meshes.indices()) {
    check_places(program.meshes[m], m);
    for (int s = 0; s < static_cast<int>(program.meshes[m].segments.size()); ++s)
      check_sharing(program.meshes[m], m, s, waits[m]);
    Races(program, m, waits[m]).run();
  }
  check_end(program, waits);
}

void verify(const Program& program) { verify(program, dependences(program)); }

}  // namespace alpa
