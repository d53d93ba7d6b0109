#include "libalpa/program/order/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <set>

#include "libalpa/base/overloaded.h"
#include "libalpa/sharding/node_price.h"

namespace alpa {
namespace {

std::vector<TensorType> tiles(const MeshProgram& stage, const std::vector<BufferIndex>& buffers) {
  std::vector<TensorType> types;
  for (const BufferIndex b : buffers) types.push_back(stage.buffers[b].tile);
  return types;
}

const TensorType& tile(const MeshProgram& stage, BufferIndex buffer) { return stage.buffers[buffer].tile; }

double compute_seconds(const MeshProgram& stage, const Compute& compute, const CostModel& costs) {
  const std::vector<TensorType> operands = tiles(stage, compute.operands);
  return kernel_seconds(*compute.op, {operands, compute.attributes}, costs);
}

std::int64_t shifted_bytes(const MeshProgram& stage, const Shift& shift) {
  std::int64_t bytes = 0;
  for (const BufferIndex b : shift.from) bytes += byte_count(tile(stage, b));
  return bytes;
}

/// Every instruction has a price, so that none is free by being forgotten.
double seconds_of(const Program& program, const MeshProgram& stage, const Instruction& instruction,
                  const CostModel& all_costs) {
  const CostModel& costs = all_costs.on(stage.mesh);
  const auto copy = [&](BufferIndex buffer) {
    return costs.copy_seconds(static_cast<double>(byte_count(tile(stage, buffer))));
  };
  return std::visit(
      Overloaded{
          [&](const Load& i) { return copy(i.to); },
          [&](const Compute& i) { return compute_seconds(stage, i, costs); },
          [&](const Convert& i) {
            return step_seconds(i.step, tile(stage, i.from), tile(stage, i.to), stage.mesh, costs);
          },
          [&](const Shift& i) { return shift_seconds(shifted_bytes(stage, i), stage.mesh, i.axis, costs); },
          [&](const Send& i) { return copy(i.from); },
          [&](const Receive& i) {
            const Transfer& transfer = program.transfers[i.transfer];
            return transfer_seconds(transfer_pieces(transfer, program.devices_per_node), transfer.whole.dtype,
                                    all_costs);
          },
          [&](const GlobalSum& i) {
            const GroupShape all = all_devices(program);
            return all_costs.on(DeviceMesh{DeviceIndex(0), {all.size()}})
                .collective_seconds(CollectiveKind::all_reduce, all,
                                    4 * static_cast<double>(i.scalars.size()), all.per_node);
          },
          [&](const Zero& i) { return copy(i.to); },
      },
      instruction.body);
}

/// How a mesh spends its time, by what its lanes do one after another. What hides behind
/// computation is not counted, nor transfers behind collectives.
class Occupation {
 public:
  explicit Occupation(MeshTime& time) : time_(time) {}

  /// Something of that kind runs; starts come in order.
  void runs(TimeKind kind, double start_s, double end_s) {
    advance(start_s);
    double& until = until_[static_cast<std::size_t>(kind)];
    until = std::max(until, end_s);
  }

  void finish(double step_s) { advance(step_s); }

 private:
  void advance(double to_s) {
    while (now_s_ < to_s) {
      double next_s = to_s;
      for (const double until : until_)
        if (until > now_s_) next_s = std::min(next_s, until);
      const auto busy = [&](TimeKind kind) { return until_[static_cast<std::size_t>(kind)] > now_s_; };
      (busy(TimeKind::compute)      ? time_.compute_s
       : busy(TimeKind::collective) ? time_.collective_s
       : busy(TimeKind::transfer)   ? time_.transfer_s
                                    : time_.idle_s) += next_s - now_s_;
      now_s_ = next_s;
    }
  }

  MeshTime& time_;
  std::array<double, 3> until_{};  ///< [TimeKind] when the last of that kind ends
  double now_s_ = 0;
};

using Interface = std::pair<DeviceIndex, bool>;  ///< of the network, by its first device; sending

/// The network interfaces that a transfer takes: those that it leaves by and those that it arrives at.
std::vector<Interface> links_of(const Transfer& transfer, const CostModel& costs) {
  std::set<Interface> links;
  const Cluster& cluster = costs.cluster();
  for (const TransferPiece& piece : transfer_pieces(transfer, cluster.devices_per_node)) {
    if (on_one_node(piece, cluster)) continue;
    links.insert({first_on_nic(piece.from_device, costs), true});
    links.insert({first_on_nic(piece.to_device, costs), false});
  }
  return {links.begin(), links.end()};
}

}  // namespace

GroupShape all_devices(const Program& program) {
  int devices = 0;
  for (const MeshProgram& stage : program.meshes) devices += device_count(stage.mesh.shape);
  const int nodes = (devices + program.devices_per_node - 1) / program.devices_per_node;
  return {nodes, (devices + nodes - 1) / nodes};
}

std::string compute_signature(const MeshProgram& mesh, const Compute& compute) {
  return signature_of(*compute.op, {tiles(mesh, compute.operands), compute.attributes});
}

std::vector<double> instruction_seconds(const Program& program, const MeshProgram& stage,
                                        const Segment& segment, const CostModel& costs) {
  std::vector<double> seconds;
  for (const Instruction& instruction : segment.instructions)
    seconds.push_back(seconds_of(program, stage, instruction, costs));
  return seconds;
}

Timeline simulate(const Program& program, const CostModel& costs, Lanes lanes, bool keep_rows) {
  const std::vector<Dependences> waits = dependences(program);
  std::vector<std::vector<std::vector<double>>> seconds;  // [mesh][segment][instruction]
  Timeline timeline;
  timeline.meshes.resize(program.meshes.size());
  std::vector<Occupation> occupations;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    seconds.emplace_back();
    for (const Segment& segment : mesh.segments)
      seconds.back().push_back(instruction_seconds(program, mesh, segment, costs));
    occupations.emplace_back(timeline.meshes[m]);
  }
  std::vector<std::vector<Interface>> links;
  for (const Transfer& transfer : program.transfers) links.push_back(links_of(transfer, costs));
  std::map<Interface, double> free_s;  // link -> when it is

  StepWalk walk(program, waits, lanes);
  const auto later = [](const StepWalk::Turn& a, const StepWalk::Turn& b) { return a.ready_s > b.ready_s; };
  std::priority_queue<StepWalk::Turn, std::vector<StepWalk::Turn>, decltype(later)> ready(later);
  const auto take = [&] {
    for (const StepWalk::Turn& turn : walk.take_ready()) ready.push(turn);
  };
  for (take(); !ready.empty(); take()) {
    StepWalk::Turn turn = ready.top();
    ready.pop();
    const auto [m, r, i] = turn.what;
    const SegmentRun& run = program.meshes[m].schedule[r];
    const Instruction& instruction = walk.instruction(turn.what);
    if (!acts(instruction.when, run.micro_batch, program.micro_batches)) {
      walk.done(turn, turn.ready_s);
      continue;
    }
    const double duration = seconds[m][run.segment][i];
    const double start = turn.ready_s;
    if (const auto* receive = std::get_if<Receive>(&instruction.body)) {
      const auto& taken = links[receive->transfer];
      for (const auto& link : taken) turn.ready_s = std::max(turn.ready_s, free_s[link]);
      if (turn.ready_s > start) {  // again when the links are free
        ready.push(turn);
        continue;
      }
      for (const auto& link : taken) free_s[link] = start + duration;
    }
    const TimeKind kind = time_kind(instruction);
    occupations[m].runs(kind, start, start + duration);
    if (keep_rows)
      timeline.rows.push_back({m, run.segment, run.micro_batch, i, instruction.lane, kind, start, duration});
    timeline.step_s = std::max(timeline.step_s, start + duration);
    walk.done(turn, start + duration);
  }
  for (Occupation& occupation : occupations) occupation.finish(timeline.step_s);
  return timeline;
}

Indexed<MeshIndex, MeshPrediction> mesh_predictions(const Program& program, const Timeline& timeline) {
  Indexed<MeshIndex, MeshPrediction> meshes;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    std::int64_t in_flight = 1;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.residence == Residence::micro_batch) in_flight = std::max(in_flight, buffer.slots);
    meshes.push_back({timeline.meshes[m], mesh.memory, in_flight});
  }
  return meshes;
}

TimeKind time_kind(const Instruction& instruction) {
  return std::visit(Overloaded{
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
                    instruction.body);
}

std::string instruction_label(const Instruction& instruction, const Graph& graph) {
  return std::visit(
      Overloaded{
          [](const Load&) { return std::string("load"); },
          [&](const Compute& i) { return fmt::format("{} {}", i.op->name, node_of(graph, i.node).name); },
          [](const Convert& i) { return fmt::format("{} {}", conversion_name(i.step.kind), i.step.axis); },
          [](const Shift& i) { return fmt::format("shift {}", i.axis); },
          [](const Send& i) { return fmt::format("send {}", i.transfer); },
          [](const Receive& i) { return fmt::format("receive {}", i.transfer); },
          [](const GlobalSum&) { return std::string("global sum"); },
          [](const Zero&) { return std::string("zero"); },
      },
      instruction.body);
}

}  // namespace alpa
