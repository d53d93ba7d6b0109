#include "libalpa/program/lower/lower.h"

#include <algorithm>
#include <map>

#include "libalpa/program/lower/memory.h"
#include "libalpa/program/lower/mesh_lowering.h"
#include "libalpa/program/lower/message_slots.h"
#include "libalpa/sharding/transfer.h"

namespace alpa {
namespace {

std::vector<StageRun> forwards(StageIndex, int, int micro_batches) {
  std::vector<StageRun> order;
  for (int m = 0; m < micro_batches; ++m) order.push_back({SegmentKind::forward, m});
  return order;
}

/// The runs of each mesh, without the update.
std::vector<std::vector<StageRun>> orders_of(const Plan& plan, int micro_batches, Purpose purpose) {
  constexpr PipelineSchedule evaluation{"evaluation", "all forwards", forwards};
  std::vector<int> mesh_of_stage;
  for (const StagePlan& stage : plan.stages) mesh_of_stage.push_back(stage.mesh);
  return mesh_orders(purpose == Purpose::train ? find_schedule(plan.schedule) : evaluation, mesh_of_stage,
                     micro_batches);
}

/// The stage of the mesh that needs a value first: the forward goes through the stages in their order, the
/// backward the other way.
StageIndex first_user(const Placement& placement, const PlannedTransfer& transfer) {
  const bool backward = phase_of_transfer(placement.graph(), transfer.value) == Phase::backward;
  StageIndex first;
  for (const NodeIndex user : placement.uses().users_of(transfer.value)) {
    const StageIndex stage = placement.stage_of_node(user);
    if (placement.mesh_of_stage(stage) != transfer.to_mesh) continue;
    if (first < 0 || (backward ? stage > first : stage < first)) first = stage;
  }
  return first;
}

bool leaves_node(const Transfer& transfer, const Cluster& cluster) {
  return std::ranges::any_of(transfer_pieces(transfer, cluster.devices_per_node),
                             [&](const TransferPiece& piece) { return !on_one_node(piece, cluster); });
}

std::vector<StageTransfer> transfers_of(const Placement& placement) {
  const Plan& plan = placement.plan();
  std::vector<StageTransfer> transfers;
  std::map<std::pair<MeshIndex, MeshIndex>, std::vector<std::pair<StageIndex, StageIndex>>>
      channels;  // between meshes -> stages
  for (const PlannedTransfer& transfer : plan.transfers) {
    const std::pair ends{placement.stage_of_value(transfer.value), first_user(placement, transfer)};
    const MeshIndex from_mesh = placement.mesh_of_stage(ends.first);
    auto& stages = channels[{from_mesh, transfer.to_mesh}];
    const auto found = std::ranges::find(stages, ends);
    const int channel = static_cast<int>(found - stages.begin());
    if (found == stages.end()) stages.push_back(ends);
    Transfer way{value_of(placement.graph(), transfer.value).type, plan.meshes[from_mesh],
                 plan.meshes[transfer.to_mesh],
                 without_terms(placement.layout_at_rest(transfer.value, from_mesh)), transfer.layout};
    if (value_of(placement.graph(), transfer.value).kind == ValueKind::state &&
        leaves_node(way, plan.cluster))
      way.to = arriving_layout(way.whole.shape, way.to, way.to_mesh.shape, plan.cluster.devices_per_node);
    transfers.push_back({std::move(way), transfer.value, ends.first, ends.second, channel});
  }
  return transfers;
}

/// [transfer] messages that may be on their way at once.
std::vector<std::int64_t> slots_of_messages(const Graph& graph, const std::vector<StageTransfer>& transfers,
                                            Purpose purpose,
                                            const std::vector<std::vector<StageRun>>& orders) {
  std::vector<Way> ways;
  std::vector<std::size_t> of_ways;
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    const Phase phase = phase_of_transfer(graph, transfers[t].value);
    if (phase == Phase::update || (phase == Phase::backward && purpose != Purpose::train)) continue;
    ways.push_back({transfers[t].from_stage, transfers[t].to_stage, phase == Phase::backward});
    of_ways.push_back(t);
  }
  const std::vector<std::int64_t> least = message_slots(orders, ways);
  std::vector<std::int64_t> slots(transfers.size(), 1);
  for (std::size_t w = 0; w < ways.size(); ++w) slots[of_ways[w]] = least[w];
  return slots;
}

void set_schedule(MeshProgram& mesh, const std::vector<StageRun>& order) {
  mesh.schedule.clear();
  const auto run = [&](StageIndex stage, SegmentKind kind, int micro_batch) {
    const auto is_it = [&](const Segment& s) { return s.stage == stage && s.kind == kind; };
    const auto found = std::ranges::find_if(mesh.segments, is_it);
    mesh.schedule.push_back({static_cast<int>(found - mesh.segments.begin()), micro_batch});
  };
  for (const StageRun& each : order) run(each.stage, each.kind, each.micro_batch);
  run(StageIndex(), SegmentKind::update, -1);
}

/// Each buffer that passes from segment to segment has a slot for every micro-batch between the begin of its
/// first use and the end of its last.
void set_slots(MeshProgram& mesh) {
  const std::vector<int> turns = turns_of_segments(mesh);
  Indexed<BufferIndex, std::vector<int>> uses(mesh.buffers.size());  // segments, ascending
  for (int s = 0; s < static_cast<int>(mesh.segments.size()); ++s) {
    if (turns[s] < 0) continue;
    for (const Instruction& instruction : mesh.segments[s].instructions)
      for (const BufferIndex b : buffers_touched(instruction)) {
        std::vector<int>& of = uses[mesh.whole(b)];
        if (of.empty() || of.back() != s) of.push_back(s);
      }
  }
  const auto in_flight = [&](const std::vector<int>& segments) {
    const int first = *std::ranges::min_element(segments, {}, [&](int s) { return turns[s]; });
    std::vector<std::int64_t> begun(mesh.segments.size());
    std::int64_t most = 1;
    for (const SegmentRun& run : mesh.schedule) {
      ++begun[run.segment];
      if (run.segment != first) continue;
      std::int64_t ended = begun[first];
      for (const int s : segments) ended = std::min(ended, begun[s]);
      most = std::max(most, begun[first] - ended);
    }
    return most;
  };
  std::map<std::vector<int>, std::int64_t> slots;
  for (const BufferIndex b : mesh.buffers.indices()) {
    if (mesh.buffers[b].residence != Residence::micro_batch || uses[b].empty()) continue;
    const auto [found, fresh] = slots.insert({uses[b], 0});
    if (fresh) found->second = in_flight(uses[b]);
    mesh.buffers[b].slots = found->second;
  }
  for (Buffer& buffer : mesh.buffers)
    if (buffer.view_of >= 0) buffer.slots = mesh.buffers[buffer.view_of].slots;
}

}  // namespace

Program lower(const Graph& graph, const Plan& plan, Purpose purpose) {
  return lower(graph, plan, purpose, plan.cluster.kind);
}

Program lower(const Graph& graph, const Plan& plan, Purpose purpose, DeviceKind device) {
  const GraphUses uses(graph);
  Program program;
  program.micro_batches = plan.micro_batches;
  program.micro_batch_samples = plan.micro_batch_samples;
  program.devices_per_node = plan.cluster.devices_per_node;
  program.overlap = plan.overlap;
  const Placement placement(plan, uses);
  program.transfers = transfers_of(placement);
  const std::vector<std::vector<StageRun>> orders = orders_of(plan, plan.micro_batches, purpose);
  const std::vector<std::int64_t> slots = slots_of_messages(graph, program.transfers, purpose, orders);
  for (const MeshIndex m : plan.meshes.indices()) {
    MeshProgram& mesh = program.meshes[program.meshes.push_back(
        MeshLowering(placement, m, purpose, device, orders[m], program.transfers, slots).run())];
    set_schedule(mesh, orders[m]);
    set_slots(mesh);
    lay_out(mesh, graph, cluster_under(plan.cluster, mesh.mesh).memory_bytes);
  }
  return program;
}

void set_micro_batches(Program& program, const Plan& plan, int micro_batches) {
  program.micro_batches = micro_batches;
  const std::vector<std::vector<StageRun>> orders = orders_of(plan, micro_batches, Purpose::train);
  for (const MeshIndex m : program.meshes.indices()) set_schedule(program.meshes[m], orders[m]);
}

}  // namespace alpa
