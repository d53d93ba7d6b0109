#include "libalpa/planner/assemble.h"

#include <algorithm>

namespace alpa {

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
    plan.stages.push_back({r.first_layer, r.end_layer, mesh, r.recomputed_layers, r.recompute_form});
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
