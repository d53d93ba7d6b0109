#include "libalpa/plan/reduced_gradients.h"

#include <algorithm>
#include <tuple>

namespace alpa {

std::vector<ValueIndex> sums_of_gradients(const Graph& graph) {
  std::vector<ValueIndex> sums;
  for (const Node& node : graph.nodes)
    if (node.op->sums_micro_batches) sums.push_back(node.results[0]);
  std::ranges::sort(sums);
  return sums;
}

bool is_summed_where_it_lies(const Placement& placement, MeshIndex mesh, ValueIndex value) {
  const Graph& graph = placement.graph();
  const NodeIndex maker = value_of(graph, value).producer;
  if (maker < 0 || !node_of(graph, maker).op->sums_micro_batches || placement.mesh_of_value(value) != mesh)
    return false;
  const bool leaves = std::ranges::count(placement.plan().transfers, value, &PlannedTransfer::value) > 0;
  const auto is_here = [&](NodeIndex user) { return placement.mesh_of_node(user) == mesh; };
  return !leaves || std::ranges::none_of(placement.uses().users_of(value), is_here);
}

std::vector<ReducedGradient> converted_gradients(const Placement& placement, MeshIndex mesh,
                                                 const Conversions& conversions) {
  const Graph& graph = placement.graph();
  const GraphUses& uses = placement.uses();
  std::vector<std::tuple<int, NodeIndex, ReducedGradient>> found;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = node_of(graph, n);
    if (!node.op->sums_micro_batches || placement.mesh_of_node(n) != mesh) continue;
    const ValueIndex sum = node.results[0];
    const auto takes_it = [&](NodeIndex user) {
      return placement.mesh_of_node(user) == mesh && node_of(graph, user).phase == Phase::update;
    };
    if (std::ranges::none_of(uses.users_of(sum), takes_it) || !is_summed_where_it_lies(placement, mesh, sum))
      continue;
    const Value& value = value_of(graph, sum);
    const ShardingSpec rests = placement.layout_at_rest(sum, mesh);
    const Conversion* const steps =
        conversions.between(value.type, rests, placement.layout_in_update(sum, mesh), value.wire);
    if (!steps || steps->empty()) continue;
    NodeIndex gradient;  // the last node that it is of
    for (const ValueIndex operand : node.operands)
      gradient = std::max(gradient, value_of(graph, operand).producer);
    found.emplace_back(
        -node.layer, gradient,
        ReducedGradient{sum, *steps, tile_type(value.type, rests, placement.plan().meshes[mesh].shape)});
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) {
    return std::tuple(std::get<0>(each), std::get<1>(each), std::get<2>(each).sum);
  });
  std::vector<ReducedGradient> sums;
  for (auto& each : found) sums.push_back(std::move(std::get<2>(each)));
  return sums;
}

std::vector<ReducedGradient> reduced_gradients(const Placement& placement, MeshIndex mesh,
                                               const Conversions& conversions) {
  std::vector<ReducedGradient> sums = converted_gradients(placement, mesh, conversions);
  std::erase_if(sums, [](const ReducedGradient& sum) { return !is_sum_alone(sum.steps); });
  return sums;
}

bool can_share_bucket(const ReducedGradient& a, const ReducedGradient& b) {
  const auto alike = [](const ConversionStep& x, const ConversionStep& y) {
    return x.axis == y.axis && x.maximum == y.maximum && x.wire_type == y.wire_type;
  };
  return a.tile.dtype == b.tile.dtype && std::ranges::equal(a.steps, b.steps, alike);
}

}  // namespace alpa
