#include "libalpa/program/lower/lower.h"

#include <algorithm>
#include <map>

#include "libalpa/plan/update_timing.h"
#include "libalpa/program/lower/buffer_slots.h"
#include "libalpa/program/lower/fetch_ahead.h"
#include "libalpa/program/lower/memory.h"
#include "libalpa/program/lower/mesh_lowering.h"
#include "libalpa/program/lower/message_slots.h"
#include "libalpa/program/lower/servers.h"

namespace alpa {
namespace {

std::vector<StageRun> forwards(StageIndex, int, int micro_batches) {
  std::vector<StageRun> order;
  for (int m = 0; m < micro_batches; ++m) order.push_back({SegmentKind::forward, m});
  return order;
}

/// The runs of each mesh, without the update.
std::vector<std::vector<StageRun>> orders_of(const Plan& plan, int micro_batches, Purpose purpose) {
  const PipelineSchedule evaluation{"evaluation", "all forwards", forwards};
  return mesh_orders(purpose == Purpose::train ? find_schedule(plan.schedule) : evaluation,
                     mesh_of_each_stage(plan), micro_batches);
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

/// Lanes between the same two meshes never share a channel; nor, where lanes overlap, do two lanes into one
/// mesh that both have its devices pass messages on. (In turn all of its devices do that in the same order.)
void set_channels(const Placement& placement, std::vector<StageTransfer>& transfers) {
  struct Lane {
    StageIndex from_stage, to_stage;
    bool passes_on = false;
    int channel = 0;
  };
  std::map<MeshIndex, std::vector<Lane>> lanes;  // of the receiving mesh
  const auto lane_of = [&](const StageTransfer& transfer) -> Lane& {
    std::vector<Lane>& of_mesh = lanes[placement.mesh_of_stage(transfer.to_stage)];
    const auto found = std::ranges::find_if(of_mesh, [&](const Lane& lane) {
      return lane.from_stage == transfer.from_stage && lane.to_stage == transfer.to_stage;
    });
    return found != of_mesh.end() ? *found
                                  : of_mesh.emplace_back(Lane{transfer.from_stage, transfer.to_stage});
  };
  const bool overlaps = placement.plan().overlap != Overlap::none;
  for (const StageTransfer& transfer : transfers) {
    Lane& lane = lane_of(transfer);
    lane.passes_on = lane.passes_on || (overlaps && passes_on(transfer.route));
  }
  for (auto& [mesh, of_mesh] : lanes)
    for (auto lane = of_mesh.begin(); lane != of_mesh.end(); ++lane) {
      const auto is_taken = [&](int channel) {
        return std::any_of(of_mesh.begin(), lane, [&](const Lane& other) {
          return other.channel == channel &&
                 ((other.passes_on && lane->passes_on) ||
                  placement.mesh_of_stage(other.from_stage) == placement.mesh_of_stage(lane->from_stage));
        });
      };
      while (is_taken(lane->channel)) ++lane->channel;
    }
  for (StageTransfer& transfer : transfers) transfer.channel = lane_of(transfer).channel;
}

std::vector<StageTransfer> transfers_of(const Placement& placement) {
  struct Known {
    Transfer transfer;
    TransferWay way;
    TransferRoute route;
  };
  std::vector<Known> known;  // many transfers of a pipeline are alike
  const Cluster& cluster = placement.plan().cluster;
  std::vector<StageTransfer> transfers;
  for (const PlannedTransfer& planned : placement.plan().transfers) {
    Transfer transfer = placement.transfer(planned);
    const int places = places_on(transfer, cluster);
    const Transfer first = moved(transfer, -places);
    auto found = std::ranges::find_if(
        known, [&](const Known& other) { return other.way == planned.way && other.transfer == first; });
    if (found == known.end())
      found = known.insert(found, {first, planned.way, transfer_route(first, planned.way, cluster)});
    TransferRoute route = moved(found->route, places);
    transfers.push_back({std::move(transfer), planned.value, placement.stage_of_value(planned.value),
                         first_user(placement, planned), planned.way, std::move(route)});
  }
  set_channels(placement, transfers);
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
  program.corrects_updates = purpose == Purpose::train && corrects_updates(uses, plan.updates);
  program.defers_updates = purpose == Purpose::train && defers_updates(uses, plan);
  program.transfers = transfers_of(placement);
  const std::vector<std::vector<StageRun>> orders = orders_of(plan, plan.micro_batches, purpose);
  const std::vector<std::int64_t> slots = slots_of_messages(graph, program.transfers, purpose, orders);
  for (const MeshIndex m : plan.meshes.indices()) {
    const std::int64_t limit = cluster_under(plan.cluster, plan.meshes[m]).memory_bytes;
    const auto lowered = [&](bool splits_early, bool fetches_ahead) {
      MeshProgram mesh =
          MeshLowering(placement, m, purpose, device, orders[m], program.transfers, slots, splits_early)
              .run();
      if (fetches_ahead) fetch_ahead(mesh);
      set_schedule(mesh, orders[m]);
      set_slots(mesh, plan.overlap);
      // Where lanes take turns, none runs ahead of another, and needs memory of its own for that.
      lay_out(mesh, graph, plan.overlap == Overlap::none ? 0 : limit);
      return mesh;
    };
    const bool may_be_early = purpose == Purpose::train && !is_in_turn(LaneKind::collective, plan.overlap);
    const bool may_fetch_ahead = plan.offloads() && !is_in_turn(LaneKind::fetch, plan.overlap);
    MeshProgram mesh = lowered(may_be_early, may_fetch_ahead);
    const auto make_room = [&](bool differs, bool splits_early, bool fetches_ahead) {
      if (differs && mesh.memory.total > limit) mesh = lowered(splits_early, fetches_ahead);
    };
    make_room(may_be_early, false, may_fetch_ahead);
    make_room(may_be_early && may_fetch_ahead, true, false);
    make_room(may_fetch_ahead, false, false);
    program.meshes.push_back(std::move(mesh));
  }
  if (!plan.has_states_at_servers()) {
    add_servers(program, plan.cluster);
    return program;
  }
  const MeshIndex served(0);
  MeshProgram servers =
      MeshLowering(placement, served, purpose, device, orders[served], program.transfers, slots, false)
          .run_at_servers(plan.cluster.server_devices());
  set_schedule(servers, {});
  set_slots(servers, plan.overlap);
  lay_out(servers, graph, 0);
  program.servers = std::move(servers);
  program.staleness = plan.staleness;
  return program;
}

void set_micro_batches(Program& program, const Plan& plan, int micro_batches) {
  program.micro_batches = micro_batches;
  const std::vector<std::vector<StageRun>> orders = orders_of(plan, micro_batches, Purpose::train);
  for (const MeshIndex m : program.meshes.indices()) {
    set_schedule(program.meshes[m], orders[m]);
    assign_slots(program.meshes[m]);
  }
  if (program.servers && !plan.has_states_at_servers())
    program.servers->schedule = program.meshes[MeshIndex(0)].schedule;
}

}  // namespace alpa
