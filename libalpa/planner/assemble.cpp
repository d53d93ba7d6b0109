#include "libalpa/planner/assemble.h"

#include <algorithm>
#include <map>
#include <set>

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
  plan.on_host = planning.on_host;
  std::map<DeviceIndex, MeshIndex> meshes;  // by their first devices
  for (const StageRequest& r : requests) {
    const auto [found, is_new] = meshes.try_emplace(r.first_device);
    if (is_new) found->second = plan.meshes.push_back({r.first_device, r.mesh});
    const MeshIndex mesh = found->second;
    plan.stages.push_back({r.first_layer, r.end_layer, mesh, r.recomputed_layers, r.recompute_form});
  }
  if (plan.devices() < cluster.devices()) plan.cluster.servers = 0;  // which come after all of these
  for (const Node& node : graph.nodes)
    plan.node_strategy.push_back(
        Strategy(plan.mesh_of(stage_of_layer(plan, node.layer)).shape.size(), kIdleAxis));
  for (const Value& value : graph.values)
    plan.value_layout.push_back(replicated_spec(value.type.shape.size()));
  for (const ShardingSpec& whole : plan.value_layout) plan.segment_layouts.push_back({whole, whole});
  const auto mesh_of = [&](std::size_t s) { return plan.stages[StageIndex(s)].mesh; };
  std::map<ValueIndex, MeshIndex> made_on;
  for (std::size_t s = 0; s < solutions.size(); ++s) {
    for (const auto& [node, strategy] : solutions[s].node_strategy) plan.node_strategy[node] = strategy;
    for (const auto& [value, layout] : solutions[s].value_layout) {
      plan.value_layout[value] = layout;
      plan.segment_layouts[value] = solutions[s].segment_layouts.at(value);
      made_on.emplace(value, mesh_of(s));
    }
  }
  // Stages of one mesh share what it gets; the first of them says how it lies.
  std::set<std::pair<ValueIndex, MeshIndex>> there;
  for (const auto& made : made_on) there.insert(made);
  for (std::size_t s = 0; s < solutions.size(); ++s)
    for (const auto& [value, layout] : solutions[s].received_layout)
      if (there.insert({value, mesh_of(s)}).second)
        plan.transfers.push_back({value, mesh_of(s), layout, solutions[s].segment_layouts.at(value)});
  for (const Input& input : graph.inputs)
    for (std::size_t s = 0; s < solutions.size(); ++s)
      if (const auto at = solutions[s].segment_layouts.find(input.value);
          at != solutions[s].segment_layouts.end() && there.insert({input.value, mesh_of(s)}).second)
        plan.inputs.push_back({input.value, mesh_of(s), at->second});
  std::sort(plan.transfers.begin(), plan.transfers.end(),
            [](const PlannedTransfer& a, const PlannedTransfer& b) {
              return std::pair(a.value, a.to_mesh) < std::pair(b.value, b.to_mesh);
            });
  return plan;
}

}  // namespace alpa
