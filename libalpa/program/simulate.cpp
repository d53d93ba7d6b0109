#include "libalpa/program/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>

#include "libalpa/base/match.h"

namespace alpa {
namespace {

std::vector<TensorType> tiles(const StageProgram& stage, const std::vector<int>& buffers) {
  std::vector<TensorType> types;
  for (const int b : buffers) types.push_back(stage.buffers[static_cast<std::size_t>(b)].tile);
  return types;
}

const TensorType& tile(const StageProgram& stage, int buffer) {
  return stage.buffers[static_cast<std::size_t>(buffer)].tile;
}

double compute_seconds(const StageProgram& stage, const Compute& compute, const CostModel& costs) {
  const std::vector<TensorType> operands = tiles(stage, compute.operands);
  const OpCall call{operands, compute.attributes};
  return costs.operator_seconds(signature_of(*compute.op, call),
                                {flops_of(*compute.op, call),
                                 static_cast<double>(bytes_moved_by(*compute.op, call)), operands[0].dtype});
}

double shift_seconds(const StageProgram& stage, const Shift& shift, const CostModel& costs) {
  std::int64_t bytes = 0;
  for (const int b : shift.from) bytes += byte_count(tile(stage, b));
  return costs.collective_seconds(CollectiveKind::shift,
                                  group_shape(stage.mesh, shift.axis, costs.cluster().devices_per_node),
                                  static_cast<double>(bytes));
}

GroupShape all_ranks(const Program& program) {
  int devices = 0;
  for (const StageProgram& stage : program.stages) devices += device_count(stage.mesh.shape);
  const int nodes = (devices + program.devices_per_node - 1) / program.devices_per_node;
  return {nodes, (devices + nodes - 1) / nodes};
}

/// Every instruction has a price, so that none is free by being forgotten.
double seconds_of(const Program& program, const StageProgram& stage, const Instruction& instruction,
                  const CostModel& costs) {
  const auto copy = [&](int buffer) {
    return costs.copy_seconds(static_cast<double>(byte_count(tile(stage, buffer))));
  };
  return std::visit(Match{
                        [&](const Load& i) { return copy(i.to); },
                        [&](const Compute& i) { return compute_seconds(stage, i, costs); },
                        [&](const Convert& i) {
                          return step_seconds(i.step, tile(stage, i.from), tile(stage, i.to), stage.mesh,
                                              costs);
                        },
                        [&](const Shift& i) { return shift_seconds(stage, i, costs); },
                        [&](const Send& i) { return copy(i.from); },
                        [&](const Receive& i) {
                          const Transfer& transfer = program.transfers[static_cast<std::size_t>(i.transfer)];
                          return transfer_seconds(transfer_pieces(transfer, program.devices_per_node),
                                                  transfer.whole.dtype, costs);
                        },
                        [&](const GlobalSum& i) {
                          return costs.collective_seconds(CollectiveKind::all_reduce, all_ranks(program),
                                                          4 * static_cast<double>(i.scalars.size()));
                        },
                        [&](const Zero& i) { return copy(i.to); },
                    },
                    instruction);
}

class Player {
 public:
  Player(const Program& program, const CostModel& costs, bool keep_rows)
      : program_(program), keep_rows_(keep_rows) {
    const std::size_t stages = program.stages.size();
    for (const StageProgram& stage : program.stages) {
      seconds_.emplace_back();
      for (const SegmentKind kind : every_segment)
        seconds_.back().push_back(instruction_seconds(program, stage, kind, costs));
    }
    run_.assign(stages, 0);
    next_.assign(stages, 0);
    clock_.assign(stages, 0.0);
    timeline_.stages.resize(stages);
  }

  Timeline play() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int s = 0; s < static_cast<int>(program_.stages.size()); ++s)
        while (step(s)) moved = true;
      moved = global_sum() || moved;
    }
    for (const double end : clock_) timeline_.step_s = std::max(timeline_.step_s, end);
    for (std::size_t s = 0; s < clock_.size(); ++s)
      timeline_.stages[s].idle_s += timeline_.step_s - clock_[s];
    return std::move(timeline_);
  }

 private:
  const Instruction* current(int stage) {
    const StageProgram& program = program_.stages[static_cast<std::size_t>(stage)];
    std::size_t& run = run_[static_cast<std::size_t>(stage)];
    std::size_t& next = next_[static_cast<std::size_t>(stage)];
    while (run < program.schedule.size() && next >= program.segment(program.schedule[run].segment).size()) {
      ++run;
      next = 0;
    }
    return run < program.schedule.size() ? &program.segment(program.schedule[run].segment)[next] : nullptr;
  }

  bool step(int stage) {
    const Instruction* instruction = current(stage);
    if (!instruction || std::holds_alternative<GlobalSum>(*instruction)) return false;
    double start = clock_[static_cast<std::size_t>(stage)];
    if (const auto* receive = std::get_if<Receive>(instruction)) {
      auto& arrived = sent_[receive->transfer];
      if (arrived.empty()) return false;
      start = std::max(start, arrived.front());
      arrived.pop_front();
    }
    const double end = finish(stage, *instruction, start);
    if (const auto* send = std::get_if<Send>(instruction)) sent_[send->transfer].push_back(end);
    return true;
  }

  bool global_sum() {
    double start = 0;
    for (int s = 0; s < static_cast<int>(program_.stages.size()); ++s) {
      const Instruction* instruction = current(s);
      if (!instruction || !std::holds_alternative<GlobalSum>(*instruction)) return false;
      start = std::max(start, clock_[static_cast<std::size_t>(s)]);
    }
    for (int s = 0; s < static_cast<int>(program_.stages.size()); ++s) finish(s, *current(s), start);
    return true;
  }

  /// Runs the current instruction of the stage from `start`; returns when it ends.
  double finish(int stage, const Instruction& instruction, double start) {
    const std::size_t s = static_cast<std::size_t>(stage);
    const ScheduledSegment& run = program_.stages[s].schedule[run_[s]];
    const double duration = seconds_[s][static_cast<std::size_t>(run.segment)][next_[s]];
    StageTime& time = timeline_.stages[s];
    time.idle_s += start - clock_[s];
    const TimeKind kind = time_kind(instruction);
    (kind == TimeKind::compute      ? time.compute_s
     : kind == TimeKind::collective ? time.collective_s
                                    : time.transfer_s) += duration;
    if (keep_rows_)
      timeline_.rows.push_back(
          {stage, run.segment, run.micro_batch, static_cast<int>(next_[s]), kind, start, duration});
    clock_[s] = start + duration;
    ++next_[s];
    return clock_[s];
  }

  const Program& program_;
  bool keep_rows_;
  std::vector<std::vector<std::vector<double>>> seconds_;  ///< [stage][segment][instruction]
  std::vector<std::size_t> run_, next_;                    ///< position in the schedule, in the segment
  std::vector<double> clock_;
  std::map<int, std::deque<double>> sent_;  ///< transfer -> when its sends were done
  Timeline timeline_;
};

}  // namespace

std::vector<double> instruction_seconds(const Program& program, const StageProgram& stage, SegmentKind kind,
                                        const CostModel& costs) {
  std::vector<double> seconds;
  for (const Instruction& instruction : stage.segment(kind))
    seconds.push_back(seconds_of(program, stage, instruction, costs));
  return seconds;
}

Timeline simulate(const Program& program, const CostModel& costs, bool keep_rows) {
  return Player(program, costs, keep_rows).play();
}

TimeKind time_kind(const Instruction& instruction) {
  return std::visit(Match{
                        [](const Load&) { return TimeKind::compute; },
                        [](const Compute&) { return TimeKind::compute; },
                        [](const Convert& i) {
                          return i.step.kind == ConversionKind::slice ? TimeKind::compute
                                                                      : TimeKind::collective;
                        },
                        [](const Shift&) { return TimeKind::collective; },
                        [](const Send&) { return TimeKind::transfer; },
                        [](const Receive&) { return TimeKind::transfer; },
                        [](const GlobalSum&) { return TimeKind::collective; },
                        [](const Zero&) { return TimeKind::compute; },
                    },
                    instruction);
}

std::string instruction_label(const Instruction& instruction, const Graph& graph) {
  return std::visit(
      Match{
          [](const Load&) { return std::string("load"); },
          [&](const Compute& i) { return fmt::format("{} {}", i.op->name, node_of(graph, i.node).name); },
          [](const Convert& i) { return fmt::format("{} {}", conversion_name(i.step.kind), i.step.axis); },
          [](const Shift& i) { return fmt::format("shift {}", i.axis); },
          [](const Send& i) { return fmt::format("send {}", i.transfer); },
          [](const Receive& i) { return fmt::format("receive {}", i.transfer); },
          [](const GlobalSum&) { return std::string("global sum"); },
          [](const Zero&) { return std::string("zero"); },
      },
      instruction);
}

}  // namespace alpa
