#include "libalpa/program/order/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <queue>

#include "libalpa/base/infinity.h"
#include "libalpa/base/overloaded.h"
#include "libalpa/program/order/exchange_times.h"
#include "libalpa/program/order/occupation.h"
#include "libalpa/program/order/shared_network.h"
#include "libalpa/program/order/slowed_computation.h"
#include "libalpa/sharding/node_price.h"
#include "libalpa/sharding/transfer/transfer_price.h"

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

double least_seconds_of_exchanges(const Program&, const CostModel&);

/// Where devices keep step, what is on its way beside later steps elsewhere is in the take.
double exchange_seconds(const Program& program, const MeshProgram& stage, const Exchange& exchange,
                        const CostModel& costs) {
  return exchange.kind == Exchange::Kind::take && program.staleness == 0
             ? least_seconds_of_exchanges(program, costs)
             : copied_seconds(program, stage, exchange, costs);
}

/// Every instruction has a price, so that none is free by being forgotten.
double seconds_of(const Program& program, const MeshProgram& stage, const Instruction& instruction,
                  const CostModel& all_costs) {
  const CostModel& costs = all_costs.on(stage.mesh);
  const auto copy = [&](BufferIndex buffer) {
    return costs.copy_seconds(static_cast<double>(byte_count(tile(stage, buffer))));
  };
  const auto move = [&](BufferIndex buffer) {
    return costs.move_seconds(static_cast<double>(byte_count(tile(stage, buffer))));
  };
  return std::visit(
      Overloaded{
          [&](const Load& i) { return copy(i.to); },
          [&](const Compute& i) { return compute_seconds(stage, i, costs); },
          [&](const Convert& i) {
            return step_seconds(i.step, tile(stage, i.from), tile(stage, i.to), stage.mesh, costs);
          },
          [&](const Shift& i) { return shift_seconds(shifted_bytes(stage, i), stage.mesh, i.axis, costs); },
          [&](const OwnerCollective& i) {
            return owners_seconds(i.reduces, owned_bytes(stage, i), stage.mesh, i.axis, costs);
          },
          [&](const Serve& i) {
            const GroupShape all = all_devices(program);
            return all_costs.collective_seconds(CollectiveKind::all_reduce, all,
                                                static_cast<double>(i.elements * dtype_bytes(i.dtype)),
                                                all.per_node);
          },
          [&](const Send& i) { return copy(i.packed); },
          [&](const Receive& i) {
            const StageTransfer& transfer = program.transfers[i.transfer];
            return transfer_seconds(transfer.route, transfer.whole.dtype, all_costs);
          },
          [&](const Unpack& i) { return copy(i.to); },
          [&](const Exchange& i) { return exchange_seconds(program, stage, i, all_costs); },
          [&](const GlobalSum& i) {
            const GroupShape all = all_devices(program);
            return all_costs.on(DeviceMesh{DeviceIndex(0), {all.size()}})
                .collective_seconds(CollectiveKind::all_reduce, all,
                                    4 * static_cast<double>(i.scalars.size()), all.per_node);
          },
          [&](const Zero& i) { return copy(i.to); },
          [&](const Copy& i) { return copy(i.to); },
          [&](const Fetch& i) { return move(i.to); },
          [&](const Offload& i) { return move(i.from); },
      },
      instruction.body);
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

namespace {

/// Of what is on its way, and of what the fullest of the servers that hold the states does.
double least_seconds_of_exchanges(const Program& program, const CostModel& costs) {
  const MeshProgram& servers = *program.servers;
  const std::vector<int> fullest = servers.fullest_coordinate();
  double servers_s = 0;
  for (const Segment& segment : servers.segments) {
    const std::vector<double> seconds = instruction_seconds(program, servers, segment, costs);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (owner_of(servers, segment.instructions[i]).is_at(fullest)) servers_s += seconds[i];
  }
  return std::max(servers_s, exchanged_seconds(program, costs));
}

/// So many steps after each other, with the rows of the last.
Timeline simulate_steps(const Program& program, const CostModel& costs, Overlap overlap, int steps,
                        bool keep_rows, const Coordinates& at) {
  const std::vector<Dependences> waits = dependences(program);
  std::vector<std::vector<std::vector<double>>> seconds;  // [mesh][segment][instruction]
  std::vector<std::vector<std::vector<bool>>> runs_here;  // likewise: on these devices
  Timeline timeline;
  timeline.meshes.resize(program.meshes.size());
  timeline.hidden.resize(program.meshes.size());
  std::vector<Occupation> occupations;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    seconds.emplace_back();
    runs_here.emplace_back();
    const bool has_owners = mesh.has_owners();
    for (const Segment& segment : mesh.segments) {
      seconds.back().push_back(instruction_seconds(program, mesh, segment, costs));
      std::vector<bool>& runs = runs_here.back().emplace_back();
      for (const Instruction& instruction : segment.instructions)
        runs.push_back(!has_owners || owner_of(mesh, instruction).is_at(at[m]));
    }
    occupations.emplace_back(timeline.meshes[m], timeline.hidden[m]);
  }
  SharedNetwork network(program, costs);
  SlowedComputation slowed(program, costs, overlap);

  StepWalk walk(program, waits, overlap, steps);
  const auto later = [](const StepWalk::Turn& a, const StepWalk::Turn& b) { return a.ready_s > b.ready_s; };
  std::priority_queue<StepWalk::Turn, std::vector<StepWalk::Turn>, decltype(later)> ready(later);
  const auto take = [&] {
    for (const StepWalk::Turn& turn : walk.take_ready()) ready.push(turn);
  };
  const auto next_end_s = [&] { return std::min(network.next_end_s(), slowed.next_end_s()); };
  for (take(); !ready.empty() || next_end_s() < infinity; take()) {
    if (const double end_s = next_end_s(); end_s <= (ready.empty() ? infinity : ready.top().ready_s)) {
      const bool is_transfer = end_s == network.next_end_s();
      const UnderWay ended = is_transfer ? network.take_next() : slowed.take_next();
      const MeshIndex m = ended.turn.what.mesh;
      const Instruction& instruction = walk.instruction(ended.turn.what);
      if (is_transfer)
        slowed.end_communication(m, instruction, end_s);
      else
        occupations[m].ends(time_kind(instruction), end_s);
      const double duration_s = end_s - ended.start_s;
      if (keep_rows && ended.turn.what.step + 1 == steps) timeline.rows[ended.row].duration_s = duration_s;
      timeline.step_s = std::max(timeline.step_s, ended.start_s + duration_s);
      walk.done(ended.turn, ended.start_s + duration_s);  // as the row has it
      continue;
    }
    const StepWalk::Turn turn = ready.top();
    ready.pop();
    const auto [m, r, i, step] = turn.what;
    const SegmentRun& run = program.meshes[m].schedule[r];
    const Instruction& instruction = walk.instruction(turn.what);
    if (!runs_here[m][run.segment][i] || !acts(instruction.when, run.micro_batch, program.micro_batches)) {
      walk.done(turn, turn.ready_s);
      continue;
    }
    const double duration = seconds[m][run.segment][i];
    const double start = turn.ready_s;
    const TimeKind kind = time_kind(instruction);
    if (keep_rows && step + 1 == steps)
      timeline.rows.push_back({m, run.segment, run.micro_batch, i, instruction.lane, kind, start, duration});
    const UnderWay under_way{turn, duration, start, timeline.rows.size() - 1};
    if (slowed.takes(m, instruction)) {
      occupations[m].begins(kind, start);
      slowed.begin(under_way);
      continue;
    }
    // Of a transfer, what it takes longer than alone is time that the mesh waits.
    occupations[m].runs(kind, start, start + duration);
    if (const auto* receive = std::get_if<Receive>(&instruction.body);
        receive && network.takes(receive->transfer)) {
      slowed.begin_communication(m, instruction, start);
      network.begin(under_way, receive->transfer);
      continue;
    }
    slowed.communicate(m, instruction, start, start + duration);
    timeline.step_s = std::max(timeline.step_s, start + duration);
    walk.done(turn, start + duration);
  }
  if (program.has_states_at_servers())
    timeline.step_s = std::max(timeline.step_s, least_seconds_of_exchanges(program, costs));
  for (Occupation& occupation : occupations) occupation.finish(timeline.step_s);
  return timeline;
}

/// Steps after which those that overlap each other follow at equal distances.
constexpr int kStepsToBeSteady = 3;

Timeline simulated(const Program& program, const CostModel& costs, Overlap overlap, bool keep_rows,
                   const Coordinates& at) {
  if (!program.defers_updates) return simulate_steps(program, costs, overlap, 1, keep_rows, at);
  const Timeline before = simulate_steps(program, costs, overlap, kStepsToBeSteady, false, at);
  Timeline all = simulate_steps(program, costs, overlap, kStepsToBeSteady + 1, keep_rows, at);
  const auto take = [](double& seconds, double earlier_s) {
    seconds = std::max(0.0, seconds - earlier_s);  // a rounding may leave less than nothing
  };
  all.step_s -= before.step_s;
  for (const MeshIndex m : all.meshes.indices()) {
    MeshTime& mesh = all.meshes[m];
    const MeshTime& earlier = before.meshes[m];
    take(mesh.compute_s, earlier.compute_s);
    take(mesh.collective_s, earlier.collective_s);
    take(mesh.transfer_s, earlier.transfer_s);
    take(all.hidden[m].collective_s, before.hidden[m].collective_s);
    take(all.hidden[m].transfer_s, before.hidden[m].transfer_s);
    all.step_s = std::max(all.step_s, mesh.compute_s + mesh.collective_s + mesh.transfer_s);
  }
  for (MeshTime& mesh : all.meshes)
    mesh.idle_s = all.step_s - (mesh.compute_s + mesh.collective_s + mesh.transfer_s);
  if (all.rows.empty()) return all;
  const double begin_s = std::ranges::min(all.rows, {}, &TimelineRow::start_s).start_s;
  for (TimelineRow& row : all.rows) row.start_s -= begin_s;
  return all;
}

}  // namespace

Coordinates fullest_coordinates(const Program& program) {
  Coordinates at;
  for (const MeshProgram& mesh : program.meshes) at.push_back(mesh.fullest_coordinate());
  return at;
}

Timeline simulate(const Program& program, const CostModel& costs, const Coordinates& at) {
  return simulated(program, costs, program.overlap, true, at);
}

Timeline simulate(const Program& program, const CostModel& costs, Overlap overlap, bool keep_rows) {
  return simulated(program, costs, overlap, keep_rows, fullest_coordinates(program));
}

Timeline simulate(const Program& program, const CostModel& costs, bool keep_rows) {
  return simulate(program, costs, program.overlap, keep_rows);
}

std::vector<TransferPrediction> transfer_predictions(const Program& program, const CostModel& costs) {
  std::vector<TransferPrediction> predictions;
  for (const StageTransfer& transfer : program.transfers) {
    TransferPrediction& prediction = predictions.emplace_back();
    prediction.seconds = transfer_seconds(transfer.route, transfer.whole.dtype, costs);
    for (const TransferMessage& message : transfer.route.messages) {
      const std::int64_t bytes = message.elements() * dtype_bytes(transfer.whole.dtype);
      prediction.bytes += bytes;
      if (!is_on_one_node(message, program.devices_per_node)) prediction.bytes_between_nodes += bytes;
    }
  }
  return predictions;
}

namespace {

/// Of which anything is kept; where stages share the mesh, of each of them.
std::int64_t micro_batches_in_flight(const MeshProgram& mesh) {
  std::int64_t most = 1;
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.residence == Residence::micro_batch && buffer.slot_of.empty())
      most = std::max(most, buffer.slots);
  std::vector<StageRun> runs;
  for (const SegmentRun& run : mesh.schedule)
    runs.push_back({mesh.segment_of(run).kind, run.micro_batch, mesh.segment_of(run).stage});
  return mesh.has_several_stages() ? most_in_flight(runs) : most;
}

}  // namespace

Indexed<MeshIndex, MeshPrediction> mesh_predictions(const Program& program, const Timeline& timeline) {
  Indexed<MeshIndex, MeshPrediction> meshes;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    meshes.push_back({timeline.meshes[m], timeline.hidden[m], mesh.memory, micro_batches_in_flight(mesh)});
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
                        [](const OwnerCollective&) { return TimeKind::collective; },
                        [](const Serve&) { return TimeKind::collective; },
                        [](const Send&) { return TimeKind::transfer; },
                        [](const Receive&) { return TimeKind::transfer; },
                        [](const Unpack&) { return TimeKind::transfer; },
                        [](const Exchange&) { return TimeKind::collective; },
                        [](const GlobalSum&) { return TimeKind::collective; },
                        [](const Zero&) { return TimeKind::compute; },
                        [](const Copy&) { return TimeKind::compute; },
                        [](const Fetch&) { return TimeKind::transfer; },
                        [](const Offload&) { return TimeKind::transfer; },
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
          [](const OwnerCollective& i) {
            return fmt::format("{} {}", owner_collective_name(i.reduces), i.axis);
          },
          [](const Serve& i) { return fmt::format("serve {}", i.axis); },
          [](const Send& i) { return fmt::format("send {}", i.transfer); },
          [](const Receive& i) { return fmt::format("receive {}", i.transfer); },
          [](const Unpack& i) { return fmt::format("unpack {}", i.transfer); },
          [](const Exchange& i) { return std::string(exchange_name(i.kind)); },
          [](const GlobalSum&) { return std::string("global sum"); },
          [](const Zero&) { return std::string("zero"); },
          [](const Copy&) { return std::string("copy"); },
          [](const Fetch&) { return std::string("fetch"); },
          [](const Offload&) { return std::string("offload"); },
      },
      instruction.body);
}

}  // namespace alpa
