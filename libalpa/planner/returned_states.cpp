#include "libalpa/planner/returned_states.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/planner/geeps_placement.h"
#include "libalpa/planner/predict.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {
namespace {

struct StateOnHost {
  ValueIndex value;
  std::int64_t bytes;  ///< of a device's tile
  bool is_parameter;
  NodeIndex update;
};

/// Parameters first, which are moved more often, then the largest.
std::vector<StateOnHost> states_on_host(const MeshProgram& mesh, const Graph& graph) {
  std::vector<StateOnHost> states;
  for (const StateIndex s : graph.states.indices())
    if (const BufferIndex b = mesh.state_buffer[s]; b >= 0 && mesh.buffers[b].space == MemorySpace::host)
      states.push_back({mesh.buffers[b].value, mesh.buffers[b].bytes, graph.states[s].is_parameter,
                        value_of(graph, graph.states[s].next).producer});
  std::ranges::stable_sort(states, std::greater(), [](const StateOnHost& state) {
    return std::pair(state.is_parameter, state.bytes);
  });
  return states;
}

/// Of one node that updates states on the host, at most.
std::int64_t staged_together(const MeshProgram& mesh, const Graph& graph) {
  std::map<NodeIndex, std::int64_t> of_node;
  for (const StateOnHost& state : states_on_host(mesh, graph)) of_node[state.update] += state.bytes;
  std::int64_t most = 0;
  for (const auto& [node, bytes] : of_node) most = std::max(most, bytes);
  return most;
}

/// Packing may take a little more than what is live: then so much less room is taken.
constexpr int kLeastRoom = 4;

class RoomForStates {
 public:
  RoomForStates(const Plan& plan, const Graph& graph, const CostModel& costs)
      : graph_(graph), costs_(costs), plan_(plan), program_(lower(graph, plan)) {
    for (const MeshProgram& mesh : program_.meshes) staged_.push_back(staged_together(mesh, graph));
  }

  /// With room for what so many updates more have staged.
  std::vector<ValueIndex> fill(int updates_ahead) {
    for (int part = 1; part <= kLeastRoom && !plan_.on_host.empty();) {
      Plan fuller = plan_;
      for (const MeshIndex m : plan_.meshes.indices()) {
        std::int64_t left = (room(program_, m) - updates_ahead * staged_[m]) / part;
        for (const StateOnHost& state : states_on_host(program_.meshes[m], graph_))
          if (state.bytes <= left) {
            left -= state.bytes;
            std::erase(fuller.on_host, state.value);
          }
      }
      if (fuller.on_host == plan_.on_host) break;
      if (!take_if_it_fits(std::move(fuller))) part *= 2;
    }
    return plan_.on_host;
  }

  /// Those that GeePS's rule leaves on the host.
  std::vector<ValueIndex> fill_by_geeps() {
    // The arena holds the states of one update that are staged, or of two where it has the room.
    for (const auto& [staged, part] : {std::pair{2, 1}, {1, 1}, {1, 2}, {1, 4}}) {
      Plan fuller = plan_;
      for (const MeshIndex m : plan_.meshes.indices()) {
        const std::vector<StateOnHost> states = states_on_host(program_.meshes[m], graph_);
        std::vector<CachedItem> items;
        for (const StateOnHost& state : states) items.push_back({state.update, state.bytes});
        const std::vector<bool> stays =
            geeps_placement(items, room(program_, m) / part + staged * staged_[m]);
        for (std::size_t i = 0; i < states.size(); ++i)
          if (stays[i]) std::erase(fuller.on_host, states[i].value);
      }
      if (take_if_it_fits(std::move(fuller))) break;
    }
    return plan_.on_host;
  }

 private:
  bool take_if_it_fits(Plan plan) {
    Program lowered = lower(graph_, plan);
    if (!std::ranges::all_of(plan.meshes.indices(), [&](MeshIndex m) { return room(lowered, m) >= 0; }))
      return false;
    plan_ = std::move(plan);
    program_ = std::move(lowered);
    return true;
  }

  std::int64_t room(const Program& program, MeshIndex m) const {
    return costs_.on(plan_.meshes[m]).cluster().memory_bytes - program.meshes[m].memory.total;
  }

  const Graph& graph_;
  const CostModel& costs_;
  Plan plan_;
  Program program_;
  Indexed<MeshIndex, std::int64_t> staged_;
};

/// [way]
std::vector<std::vector<ValueIndex>> fewer_on_host(const Plan& plan, const Graph& graph,
                                                   const CostModel& costs) {
  std::vector<std::vector<ValueIndex>> all;
  const bool may_be_ahead = !is_in_turn(LaneKind::fetch, plan.overlap);
  for (const int updates_ahead : {0, 1, 2})
    if (may_be_ahead || updates_ahead == 0)
      all.push_back(RoomForStates(plan, graph, costs).fill(updates_ahead));
  if (may_be_ahead) all.push_back(RoomForStates(plan, graph, costs).fill_by_geeps());
  return all;
}

bool is_better(const Plan& plan, const Plan& than) {
  constexpr double kSame = 1e-9;  // what is hidden takes the same time but for rounding
  const std::int64_t lacking = host_shortfall(plan), other_lacking = host_shortfall(than);
  const double step_s = plan.prediction.step_s, other_s = than.prediction.step_s;
  if (lacking != other_lacking) return lacking < other_lacking;
  return step_s < other_s * (1 - kSame) ||
         (step_s <= other_s * (1 + kSame) && plan.on_host.size() < than.on_host.size());
}

}  // namespace

std::int64_t host_shortfall(const Plan& plan) {
  std::map<int, std::int64_t> resting;  // by node
  std::int64_t most = 0;
  for (const MeshIndex m : plan.meshes.indices()) {
    const DeviceMesh& mesh = plan.meshes[m];
    const std::int64_t there = cluster_under(plan.cluster, mesh).host_memory_bytes,
                       each = plan.prediction.meshes[m].memory.host;
    const int first = mesh.first_device;
    for (int device = first; device < first + device_count(mesh.shape) && there > 0; ++device) {
      std::int64_t& of_node = resting[device / plan.cluster.devices_per_node];
      most = std::max(most, (of_node += each) - there);
    }
  }
  return most;
}

void return_states(Plan& plan, const Graph& graph, const CostModel& costs,
                   const std::function<bool(const Plan&)>& fits) {
  if (plan.on_host.empty()) return;
  for (std::vector<ValueIndex>& fewer : fewer_on_host(plan, graph, costs)) {
    Plan other = plan;
    other.on_host = std::move(fewer);
    predict_steady(other, graph, costs);
    if (fits(other) && is_better(other, plan)) plan = std::move(other);
  }
}

}  // namespace alpa
