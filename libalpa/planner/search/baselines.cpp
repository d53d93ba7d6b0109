#include "libalpa/planner/search/baselines.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace alpa {
namespace {

/// Ends of `stages` runs of layers with about equal FLOPs.
std::vector<int> equal_work_ends(const Graph& graph, int stages) {
  const int layers = static_cast<int>(graph.layers.size());
  std::vector<double> work(static_cast<std::size_t>(layers), 0.0);
  double total = 0;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::update) continue;
    const std::vector<TensorType> types = operand_types(graph, node);
    const double flops = flops_of(*node.op, {types, node.attributes});
    work[node.layer] += flops;
    total += flops;
  }
  std::vector<int> ends;
  double sum = 0;
  for (int layer = 0, stage = 1; layer < layers; ++layer) {
    sum += work[layer];
    const int left = layers - layer - 1;
    const bool share_reached =
        sum + 0.5 * (layer + 1 < layers ? work[static_cast<std::size_t>(layer) + 1] : 0) >=
        total * stage / stages;
    if (stage < stages && (share_reached || left == stages - stage)) {
      ends.push_back(layer + 1);
      ++stage;
    }
  }
  ends.push_back(layers);
  return ends;
}

PinnedPlan pipeline(std::string method, const Graph& graph, int stages, const MeshShape& mesh,
                    std::vector<AxisRole> roles, StateSharding state_sharding, int micro_batches,
                    const std::string& schedule) {
  PinnedPlan plan{std::move(method), micro_batches, schedule, {}};
  int first = 0;
  for (const int end : equal_work_ends(graph, stages)) {
    plan.stages.push_back({.first_layer = first,
                           .end_layer = end,
                           .mesh = mesh,
                           .micro_batches = micro_batches,
                           .roles = roles,
                           .state_sharding = state_sharding});
    first = end;
  }
  return plan;
}

std::vector<PinnedPlan> megatron(const Graph& graph, int devices, int devices_per_node, int micro_batches,
                                 const std::string& schedule) {
  std::vector<PinnedPlan> plans;
  for (int pipe = 1; pipe <= devices && pipe <= static_cast<int>(graph.layers.size()); ++pipe) {
    if (devices % pipe != 0) continue;
    for (int tensor = 1; tensor * pipe <= devices; ++tensor) {
      const int data = devices / pipe / tensor;
      if (data * tensor * pipe != devices || tensor > devices_per_node || graph.samples % data != 0) continue;
      MeshShape mesh;
      std::vector<AxisRole> roles;
      if (data > 1) {
        mesh.push_back(data);
        roles.push_back(AxisRole::data);
      }
      if (tensor > 1) {
        mesh.push_back(tensor);
        roles.push_back(AxisRole::tensor);
      }
      plans.push_back(pipeline(fmt::format("megatron dp{} tp{} pp{}", data, tensor, pipe), graph, pipe, mesh,
                               roles, StateSharding::none, micro_batches, schedule));
    }
  }
  return plans;
}

bool has_sequence(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [](const Input& input) {
    return input.is_of_samples() && input.kind != InputKind::data;
  });
}

}  // namespace

std::vector<std::string> baseline_names() {
  std::vector<std::string> names;
  for (const Word<std::string>& method : method_words())
    if (method.value != "auto" && method.value != "search") names.push_back(method.value);
  return names;
}

std::vector<PinnedPlan> baseline_plans(const std::string& method, const Graph& graph, int devices,
                                       int devices_per_node, int micro_batches, const std::string& schedule) {
  const MeshShape all = devices > 1 ? MeshShape{devices} : MeshShape{};
  const auto one_stage = [&](AxisRole role, StateSharding state_sharding) {
    return std::vector<PinnedPlan>{pipeline(method, graph, 1, all, std::vector<AxisRole>(all.size(), role),
                                            state_sharding, micro_batches, schedule)};
  };
  static const std::map<std::string, StateSharding> kinds_of_data_parallel{
      {"data-parallel", StateSharding::none},
      {"zero-1", StateSharding::optimizer},
      {"zero-2", StateSharding::gradients},
      {"zero-3", StateSharding::parameters}};
  if (method == "serial")
    return {pipeline(method, graph, 1, {}, {}, StateSharding::free, micro_batches, schedule)};
  if (const auto found = kinds_of_data_parallel.find(method); found != kinds_of_data_parallel.end())
    return graph.samples % devices == 0 ? one_stage(AxisRole::data, found->second)
                                        : std::vector<PinnedPlan>{};
  if (method == "sequence" || method == "ring")
    return has_sequence(graph)
               ? one_stage(method == "ring" ? AxisRole::ring : AxisRole::sequence, StateSharding::none)
               : std::vector<PinnedPlan>{};
  if (method == "tensor") return one_stage(AxisRole::tensor, StateSharding::none);
  if (method == "megatron") return megatron(graph, devices, devices_per_node, micro_batches, schedule);
  return {};
}

}  // namespace alpa
