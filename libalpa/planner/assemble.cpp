#include "libalpa/planner/assemble.h"

#include <algorithm>
#include <numeric>

namespace alpa {

void place_stages(std::vector<StageRequest>& requests, const Cluster& cluster) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return device_count(requests[a].mesh) > device_count(requests[b].mesh);
  });
  int next = 0;
  for (const std::size_t s : order) {
    requests[s].first_device = DeviceIndex(next);
    next += device_count(requests[s].mesh);
  }
  const auto nodes = [&](const StageRequest& request) {
    const int first = request.first_device, last = first + device_count(request.mesh) - 1;
    return std::pair(first / cluster.devices_per_node, last / cluster.devices_per_node);
  };
  const auto apart = [&](std::size_t a, std::size_t b) {
    const auto one = nodes(requests[a]), other = nodes(requests[b]);
    return one != other || one.first != one.second;
  };
  for (std::size_t s = 0; s < requests.size(); ++s) {
    requests[s].before_is_apart = s > 0 && apart(s - 1, s);
    requests[s].after_is_apart = s + 1 < requests.size() && apart(s, s + 1);
  }
}

Plan assemble(const PlanningGraph& planning, const std::vector<StageRequest>& requests,
              const std::vector<StageSolution>& solutions, const std::string& schedule,
              const Cluster& cluster) {
  const Graph& graph = planning.graph();
  Plan plan;
  plan.graph_fingerprint = graph_fingerprint(graph);
  plan.micro_batch_samples = graph.samples;
  plan.micro_batches = requests[0].micro_batches;
  plan.schedule = schedule;
  plan.cluster = cluster;
  for (const StageRequest& r : requests) {
    const MeshIndex mesh = plan.meshes.push_back({r.first_device, r.mesh});
    plan.stages.push_back({r.first_layer, r.end_layer, mesh, r.recomputed_layers});
  }
  for (const Node& node : graph.nodes)
    plan.node_strategy.push_back(
        Strategy(plan.mesh_of(stage_of_layer(plan, node.layer)).shape.size(), kIdleAxis));
  for (const Value& value : graph.values)
    plan.value_layout.push_back(replicated_spec(value.type.shape.size()));
  for (const ShardingSpec& whole : plan.value_layout) plan.segment_layouts.push_back({whole, whole});
  for (std::size_t s = 0; s < solutions.size(); ++s) {
    for (const auto& [node, strategy] : solutions[s].node_strategy) plan.node_strategy[node] = strategy;
    for (const auto& [value, layout] : solutions[s].value_layout) {
      plan.value_layout[value] = layout;
      plan.segment_layouts[value] = solutions[s].segment_layouts.at(value);
    }
    for (const auto& [value, layout] : solutions[s].received_layout)
      plan.transfers.push_back({value, MeshIndex(s), layout, solutions[s].segment_layouts.at(value)});
  }
  for (const Input& input : graph.inputs)
    for (std::size_t s = 0; s < solutions.size(); ++s)
      if (const auto at = solutions[s].segment_layouts.find(input.value);
          at != solutions[s].segment_layouts.end())
        plan.inputs.push_back({input.value, MeshIndex(s), at->second});
  std::sort(plan.transfers.begin(), plan.transfers.end(),
            [](const PlannedTransfer& a, const PlannedTransfer& b) {
              return std::pair(a.value, a.to_mesh) < std::pair(b.value, b.to_mesh);
            });
  return plan;
}

}  // namespace alpa
