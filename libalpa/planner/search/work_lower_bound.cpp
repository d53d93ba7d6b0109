#include "libalpa/planner/search/work_lower_bound.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/semantics/stage_semantics.h"

namespace alpa {
namespace {

double node_floor(const Graph& graph, const StageSemantics& whole, NodeIndex n, const MeshCosts& mesh_costs) {
  if (node_of(graph, n).op->reduces_globally || whole.kernel_of_sum(n) >= 0) return 0;
  double least = infinity;
  for (const NodeOption& option : mesh_costs.options(n))
    least = std::min(least, option.seconds - option.passing_s);
  return least;
}

/// Whether a node makes what another layer gets, for the same pass through the layers.
bool leaves(const PlanningGraph& planning, NodeIndex n) {
  const Node& node = node_of(planning.graph(), n);
  return std::ranges::any_of(node.results, [&](ValueIndex v) {
    return std::ranges::any_of(planning.uses.users_of(v), [&](NodeIndex user) {
      const int layer = node_of(planning.graph(), user).layer;
      return node.phase == Phase::forward ? layer > node.layer : layer < node.layer;
    });
  });
}

}  // namespace

std::vector<LayerLowerBound> layer_lower_bounds(const PlanningGraph& planning, const MeshCosts& mesh_costs) {
  const Graph& graph = planning.graph();
  const StageSemantics whole(planning.uses, {0, static_cast<int>(graph.layers.size()), false});
  const Indexed<NodeIndex, bool> of_weights = leads_to_weights_alone(graph);
  std::map<int, LayerLowerBound> of_class;  // equal layers have equal floors
  std::vector<LayerLowerBound> floors;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    const auto [floor, is_new] = of_class.try_emplace(planning.classes.of_layer[layer]);
    if (is_new)
      for (const NodeIndex n : planning.classes.layer_nodes[layer]) {
        const Phase phase = node_of(graph, n).phase;
        const double least = node_floor(graph, whole, n, mesh_costs);
        LayerLowerBound& of_layer = floor->second;
        (phase == Phase::update ? of_layer.update_s : of_layer.micro_batch_s) += least;
        if (phase == Phase::forward) of_layer.forward_s += least;
        if (phase == Phase::update) continue;
        const bool is_sent = leaves(planning, n);
        if (phase == Phase::forward) of_layer.sends_last = is_sent;
        double& end = phase == Phase::forward ? of_layer.forward_end_s : of_layer.backward_end_s;
        end = is_sent ? 0 : end + least;
        if (of_weights[n]) of_layer.weights_s += least;
        if (phase == Phase::backward && !of_weights[n])
          of_layer.inputs_end_s = is_sent ? 0 : of_layer.inputs_end_s + least;
      }
    floors.push_back(floor->second);
  }
  return floors;
}

std::vector<StageFloor> stage_floors(const PlanningGraph& planning, const CostTable& book,
                                     const std::vector<StageRequest>& stages) {
  std::map<const MeshCosts*, std::vector<LayerLowerBound>> floors;
  std::vector<StageFloor> all;
  for (const StageRequest& stage : stages) {
    const MeshCosts& costs = book.known(DeviceMesh{stage.first_device, stage.mesh});
    const auto [of_mesh, is_new] = floors.try_emplace(&costs);
    if (is_new) of_mesh->second = layer_lower_bounds(planning, costs);
    StageFloor& least = all.emplace_back();
    for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
      const LayerLowerBound& floor = of_mesh->second[layer];
      least.forward_s += floor.forward_s;
      least.turn_s += floor.micro_batch_s;
      least.inputs_turn_s += floor.micro_batch_s - floor.weights_s;
      least.backward_s += floor.micro_batch_s - floor.forward_s;
      least.micro_batch_s += floor.micro_batch_s;
      least.step_s += stage.micro_batches * floor.micro_batch_s + floor.update_s;
      least.update_s += floor.update_s;
    }
    const LayerLowerBound& last = of_mesh->second[stage.end_layer - 1];
    least.forward_s -= last.forward_end_s;
    least.turn_s -= last.forward_end_s + of_mesh->second[stage.first_layer].backward_end_s;
    least.inputs_turn_s -= last.forward_end_s + of_mesh->second[stage.first_layer].inputs_end_s;
    least.sends_last = last.sends_last;
  }
  return all;
}

WorkLowerBound::WorkLowerBound(const PlanningGraph& planning, const CostTable& book,
                               const std::vector<int>& sizes, int devices_per_node, int mesh_axes) {
  const std::size_t layers = planning.classes.layer_nodes.size();
  std::vector<double> device(layers, infinity);
  sends_last_.assign(layers, true);
  for (const int size : sizes) {
    std::vector<double> micro_batch(layers, infinity), forward = micro_batch, inputs = micro_batch,
                                                       backward = micro_batch;
    OfSize& of_size = of_size_[size];
    of_size.forward_end = of_size.backward_end = of_size.inputs_end = std::vector<double>(layers, 0);
    for (const MeshShape& mesh : mesh_shapes(size, devices_per_node, mesh_axes)) {
      const std::vector<LayerLowerBound> floors = layer_lower_bounds(planning, book.known(mesh));
      for (std::size_t layer = 0; layer < layers; ++layer) {
        const LayerLowerBound& floor = floors[layer];
        micro_batch[layer] = std::min(micro_batch[layer], floor.micro_batch_s);
        forward[layer] = std::min(forward[layer], floor.forward_s);
        inputs[layer] = std::min(inputs[layer], floor.micro_batch_s - floor.weights_s);
        backward[layer] = std::min(backward[layer], floor.micro_batch_s - floor.forward_s);
        device[layer] = std::min(device[layer], size * floor.micro_batch_s);
        sends_last_[layer] = sends_last_[layer] && floor.sends_last;
        of_size.forward_end[layer] = std::max(of_size.forward_end[layer], floor.forward_end_s);
        of_size.backward_end[layer] = std::max(of_size.backward_end[layer], floor.backward_end_s);
        of_size.inputs_end[layer] = std::max(of_size.inputs_end[layer], floor.inputs_end_s);
      }
    }
    of_size.micro_batch = layer_sums(micro_batch);
    of_size.forward = layer_sums(forward);
    of_size.inputs = layer_sums(inputs);
    of_size.backward = layer_sums(backward);
  }
  device_ = layer_sums(device);
}

StageFloor WorkLowerBound::floor(int first, int end, int size) const {
  const OfSize& of_size = of_size_.at(size);
  const double forward_end_s = of_size.forward_end[end - 1], backward_end_s = of_size.backward_end[first];
  const double micro_batch_s = sum_between(of_size.micro_batch, first, end);
  return {.forward_s = std::max(0.0, sum_between(of_size.forward, first, end) - forward_end_s),
          .turn_s = std::max(0.0, micro_batch_s - forward_end_s - backward_end_s),
          .inputs_turn_s = std::max(
              0.0, sum_between(of_size.inputs, first, end) - forward_end_s - of_size.inputs_end[first]),
          .backward_s = sum_between(of_size.backward, first, end),
          .micro_batch_s = micro_batch_s,
          .sends_last = sends_last_[end - 1]};
}

double WorkLowerBound::rest_s(int first, int end, int rest) const {
  return rest == 0 ? 0 : (device_.back() - sum_between(device_, first, end)) / rest;
}

}  // namespace alpa
