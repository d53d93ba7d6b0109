#include "libalpa/plan/plan_columns.h"

#include "libalpa/plan/facts/synchronisation.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {

std::vector<DerivedColumn> derived_columns(const Plan& plan, const Graph& graph) {
  DerivedColumn op{"/nodes/operator", {}}, name{"/nodes/name", {}}, layer{"/nodes/layer", {}},
      words{"/nodes/strategy_in_words", {}}, values{"/values/name", {}};
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    const std::vector<TensorType> types = operand_types(graph, node);
    op.rows.emplace_back(node.op->name);
    name.rows.push_back(node.name);
    layer.rows.push_back(graph.layers[node.layer]);
    words.rows.push_back(strategy_text(*node.op, {types, node.attributes}, plan.node_strategy[n]));
  }
  for (const Value& value : graph.values) values.rows.push_back(value.name);
  DerivedColumn sums{"/sync/name", {}}, ways{"/sync/way", {}};
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  Indexed<MeshIndex, Conversions> conversions;
  for (const DeviceMesh& mesh : plan.meshes) conversions.push_back(Conversions(plan.cluster, mesh));
  for (const ValueIndex sum : sums_of_gradients(graph)) {
    const MeshIndex mesh = placement.mesh_of_value(sum);
    sums.rows.push_back(value_of(graph, sum).name);
    ways.rows.push_back(synchronisation_text(placement, mesh, conversions[mesh], sum));
  }
  DerivedColumn owned{"/sync/owners/name", {}};
  for (const GradientSync& sync : plan.sync)
    owned.rows.insert(owned.rows.end(), sync.owners.size(), value_of(graph, sync.sum).name);
  std::vector<DerivedColumn> all{op, name, layer, words, values, sums, ways};
  if (!owned.rows.empty()) all.push_back(std::move(owned));
  if (plan.on_host.empty()) return all;
  DerivedColumn on_host{"/host/name", {}};
  for (const ValueIndex v : plan.on_host) on_host.rows.push_back(value_of(graph, v).name);
  all.push_back(std::move(on_host));
  return all;
}

}  // namespace alpa
