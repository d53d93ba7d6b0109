#include "libalpa/planner/search/work_lower_bound.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/semantics/stage_semantics.h"

namespace alpa {
namespace {

double node_floor(const Graph& graph, const StageSemantics& whole, NodeIndex n, const MeshCosts& mesh_costs) {
  if (node_of(graph, n).op->reduces_globally || whole.kernel_of_sum(n) >= 0) return 0;
  double least = infinity;
  for (const NodeOption& option : mesh_costs.options(n)) least = std::min(least, option.seconds);
  return least;
}

}  // namespace

std::vector<LayerLowerBound> layer_lower_bounds(const PlanningGraph& planning, const MeshCosts& mesh_costs) {
  const Graph& graph = planning.graph();
  const StageSemantics whole(planning.uses, {0, static_cast<int>(graph.layers.size()), false});
  std::map<int, LayerLowerBound> of_class;  // equal layers have equal floors
  std::vector<LayerLowerBound> floors;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    const auto [floor, is_new] = of_class.try_emplace(planning.classes.of_layer[layer]);
    if (is_new)
      for (const NodeIndex n : planning.classes.layer_nodes[layer]) {
        const bool update = node_of(graph, n).phase == Phase::update;
        (update ? floor->second.update_s : floor->second.micro_batch_s) +=
            node_floor(graph, whole, n, mesh_costs);
      }
    floors.push_back(floor->second);
  }
  return floors;
}

std::vector<StageSeconds> least_seconds(const PlanningGraph& planning, const CostTable& book,
                                        const std::vector<StageRequest>& stages) {
  std::map<MeshShape, std::vector<LayerLowerBound>> floors;
  std::vector<StageSeconds> seconds;
  for (const StageRequest& stage : stages) {
    const auto [of_mesh, is_new] = floors.try_emplace(stage.mesh);
    if (is_new) of_mesh->second = layer_lower_bounds(planning, book.known(stage.mesh));
    StageSeconds& least = seconds.emplace_back(0, 0);
    for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
      const LayerLowerBound& floor = of_mesh->second[layer];
      least.first += floor.micro_batch_s;
      least.others += (stage.micro_batches - 1) * floor.micro_batch_s + floor.update_s;
    }
  }
  return seconds;
}

WorkLowerBound::WorkLowerBound(const PlanningGraph& planning, const CostTable& book,
                               const std::vector<int>& sizes, int devices_per_node) {
  const std::size_t layers = planning.classes.layer_nodes.size();
  std::vector<double> device(layers, infinity);
  for (const int size : sizes) {
    std::vector<double> micro_batch(layers, infinity);
    for (const MeshShape& mesh : mesh_shapes(size, devices_per_node)) {
      const std::vector<LayerLowerBound> floors = layer_lower_bounds(planning, book.known(mesh));
      for (std::size_t layer = 0; layer < layers; ++layer) {
        micro_batch[layer] = std::min(micro_batch[layer], floors[layer].micro_batch_s);
        device[layer] = std::min(device[layer], size * floors[layer].micro_batch_s);
      }
    }
    micro_batch_[size] = layer_sums(micro_batch);
  }
  device_ = layer_sums(device);
}

double WorkLowerBound::micro_batch_s(int first, int end, int size) const {
  return sum_between(micro_batch_.at(size), first, end);
}

double WorkLowerBound::rest_s(int first, int end, int rest) const {
  return rest == 0 ? 0 : (device_.back() - sum_between(device_, first, end)) / rest;
}

}  // namespace alpa
