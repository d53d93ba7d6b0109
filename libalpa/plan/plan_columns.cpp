#include "libalpa/plan/plan_columns.h"

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
  std::vector<DerivedColumn> columns{op, name, layer, words, values};
  if (!plan.sync.empty()) {
    DerivedColumn& sums = columns.emplace_back(DerivedColumn{"/sync/name", {}});
    for (const GradientSync& sync : plan.sync) sums.rows.push_back(value_of(graph, sync.sum).name);
  }
  return columns;
}

}  // namespace alpa
