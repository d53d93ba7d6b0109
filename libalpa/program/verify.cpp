#include "libalpa/program/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/base/match.h"
#include "libalpa/program/memory.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(std::size_t stage, const std::string& what) {
  throw Error(ErrorKind::run_time, fmt::format("the program of stage {} is wrong: {}", stage, what),
              "make the plan again with alpa-plan; if that does not help, report the plan file");
}

void check_reads(const StageProgram& program, std::size_t stage) {
  std::vector<bool> written(program.buffers.size());
  for (std::size_t b = 0; b < written.size(); ++b)
    written[b] = program.buffers[b].residence == Residence::state;
  for (const SegmentKind kind : every_segment) {
    const auto& instructions = program.segment(kind);
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const int b : buffers_read(instructions[i]))
        if (!written[static_cast<std::size_t>(b)])
          refuse(stage,
                 fmt::format("{} instruction {} reads buffer {} ({}) before anything wrote it",
                             segment_name(kind), i, b, program.buffers[static_cast<std::size_t>(b)].name));
      for (const int b : buffers_written(instructions[i])) written[static_cast<std::size_t>(b)] = true;
    }
    for (std::size_t b = 0; b < written.size(); ++b)
      if (program.buffers[b].residence == Residence::segment) written[b] = false;
  }
}

void check_overlaps(const StageProgram& program, std::size_t stage, SegmentKind kind) {
  const std::vector<Lifetime> lives = lifetimes(program, kind);
  struct Block {
    std::int64_t begin, end;
    int buffer;
  };
  // Sweep over addresses: blocks sorted by begin, compared while they overlap.
  std::multimap<std::int64_t, Block> blocks;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.residence == Residence::segment && lives[b].first < 0) continue;
    const std::int64_t slots = buffer.residence == Residence::micro_batch ? program.slots : 1;
    blocks.insert(
        {buffer.offset, {buffer.offset, buffer.offset + buffer.bytes * slots, static_cast<int>(b)}});
    if (buffer.offset < 0 || buffer.offset + buffer.bytes * slots > program.memory.total)
      refuse(stage, fmt::format("buffer {} lies outside the arena", b));
  }
  for (auto a = blocks.begin(); a != blocks.end(); ++a)
    for (auto b = std::next(a); b != blocks.end() && b->second.begin < a->second.end; ++b) {
      const auto life = [&](const Block& block) {
        const std::size_t i = static_cast<std::size_t>(block.buffer);
        return program.buffers[i].residence == Residence::segment ? lives[i] : Lifetime{0, 1 << 30};
      };
      const Lifetime x = life(a->second), y = life(b->second);
      if (x.first <= y.last && y.first <= x.last)
        refuse(stage, fmt::format("buffers {} and {} share memory in {}", a->second.buffer, b->second.buffer,
                                  segment_name(kind)));
    }
}

/// Every micro-batch goes forward, then backward, once; no two that are in flight have the same slot; the
/// update is last.
void check_schedule(const StageProgram& program, std::size_t stage, int micro_batches) {
  const auto& runs = program.schedule;
  if (runs.empty() || runs.back() != ScheduledSegment{SegmentKind::update, -1})
    refuse(stage, "its schedule does not end with the update");
  const bool trains = std::any_of(runs.begin(), runs.end(),
                                  [](const auto& run) { return run.segment == SegmentKind::backward; });
  std::vector<int> done(static_cast<std::size_t>(micro_batches));  // segments of each micro-batch
  std::map<int, int> holder;                                       // slot -> micro-batch in flight
  for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
    const auto [segment, m] = runs[r];
    const int due = segment == SegmentKind::forward ? 0 : segment == SegmentKind::backward ? 1 : -1;
    if (m < 0 || m >= micro_batches || done[static_cast<std::size_t>(m)]++ != due)
      refuse(stage,
             fmt::format("its schedule has {} of micro-batch {} out of turn", segment_name(segment), m));
    if (!trains) continue;
    const int slot = m % program.slots;
    if (due == 1)
      holder.erase(slot);
    else if (const auto [held, free] = holder.insert({slot, m}); !free)
      refuse(stage, fmt::format("micro-batches {} and {} are in flight in the same slot", held->second, m));
  }
  for (std::size_t m = 0; m < done.size(); ++m)
    if (done[m] != (trains ? 2 : 1)) refuse(stage, fmt::format("its schedule leaves micro-batch {} out", m));
}

/// Runs the schedule without time: a receive waits for its send, a global sum for all stages.
class Rendezvous {
 public:
  explicit Rendezvous(const Program& program)
      : program_(program),
        at_(program.stages.size()),
        sums_(program.stages.size()),
        sent_(program.stages.size()) {
    for (const StageProgram& stage : program.stages) {
      lists_.emplace_back();
      for (const ScheduledSegment& run : stage.schedule)
        for (const Instruction& instruction : stage.segment(run.segment))
          lists_.back().push_back(&instruction);
    }
  }

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < lists_.size(); ++s)
        while (at_[s] < lists_[s].size() && step(s, *lists_[s][at_[s]])) {
          ++at_[s];
          moved = true;
        }
      moved = release_sums() || moved;
    }
    for (std::size_t s = 0; s < lists_.size(); ++s)
      if (at_[s] < lists_[s].size())
        refuse(s, fmt::format("it waits for ever at instruction {} of the step", at_[s]));
    for (const auto& [pair, queue] : in_flight_)
      if (!queue.empty())
        refuse(static_cast<std::size_t>(pair.first),
               fmt::format("transfer {} is sent but never received", queue.front()));
  }

 private:
  /// Whether the stage goes on to its next instruction.
  bool step(std::size_t stage, const Instruction& instruction) {
    return std::visit(Match{
                          [](const Load&) { return true; },
                          [](const Compute&) { return true; },
                          [](const Convert&) { return true; },  // all devices of the stage are there
                          [](const Shift&) { return true; },    // likewise
                          [&](const Send& i) { return send(stage, i); },
                          [&](const Receive& i) { return receive(stage, i); },
                          [&](const GlobalSum&) {
                            sums_[stage] = true;
                            return false;
                          },
                          [](const Zero&) { return true; },
                      },
                      instruction);
  }

  /// When all turns of a message's memory are taken, the rank waits for all that it has sent.
  bool send(std::size_t stage, const Send& send) {
    std::map<int, int>& round = sent_[stage];
    if (round[send.transfer] == send.turns) {
      if (has_in_flight(send)) return false;
      round.clear();
    }
    ++round[send.transfer];
    in_flight_[ends(send.transfer)].push_back(send.transfer);
    return true;
  }

  bool receive(std::size_t stage, const Receive& receive) {
    auto& queue = in_flight_[ends(receive.transfer)];
    if (queue.empty()) return false;
    if (queue.front() != receive.transfer)
      refuse(stage, fmt::format("it receives transfer {} where {} arrives", receive.transfer, queue.front()));
    queue.pop_front();
    return true;
  }

  bool release_sums() {
    for (const bool waiting : sums_)
      if (!waiting) return false;
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      sums_[s] = false;
      ++at_[s];
    }
    return true;
  }

  /// Whether anything that the sender sent has not arrived yet.
  bool has_in_flight(const Send& send) const {
    const int sender = ends(send.transfer).first;
    return std::any_of(in_flight_.begin(), in_flight_.end(),
                       [&](const auto& way) { return way.first.first == sender && !way.second.empty(); });
  }

  std::pair<int, int> ends(int transfer) const {
    const Transfer& t = program_.transfers[static_cast<std::size_t>(transfer)];
    return {t.from_mesh.first_device, t.to_mesh.first_device};
  }

  const Program& program_;
  std::vector<std::vector<const Instruction*>> lists_;
  std::vector<std::size_t> at_;
  std::vector<bool> sums_;
  std::vector<std::map<int, int>> sent_;  ///< [stage] messages of each transfer since it waited for its sends
  std::map<std::pair<int, int>, std::deque<int>> in_flight_;
};

}  // namespace

void verify(const Program& program, const Graph&) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    check_schedule(program.stages[s], s, program.micro_batches);
    check_reads(program.stages[s], s);
    for (const SegmentKind kind : every_segment) check_overlaps(program.stages[s], s, kind);
  }
  Rendezvous(program).run();
}

}  // namespace alpa
