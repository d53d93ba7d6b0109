#include "libalpa/ops/vertex.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/ops/body_maker.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_gradient.h"
#include "libalpa/ops/vertex_program.h"

namespace alpa {
namespace {

/// Whether each row of the result is the product of that row of one operand and of a weight, the other.
bool multiplies_rows(const Graph& graph, const Node& node) {
  const std::vector<TensorType> types = operand_types(graph, node);
  const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
  for (const std::size_t rows : {0, 1}) {
    const std::vector<DimensionFactors>&of = rule.operands[rows], &weight = rule.operands[1 - rows],
          &result = rule.results[0];
    if (of.size() != 3 || weight.size() != 2 || result.size() != 3) continue;
    if (of[0] != result[0] || of[1] != result[1]) continue;
    if (std::pair(weight[0], weight[1]) == std::pair(of[2], result[2]) ||
        std::pair(weight[1], weight[0]) == std::pair(of[2], result[2]))
      return true;
  }
  return false;
}

/// Whether rounds can do it for a row: products with a weight, and what works element by element.
bool works_on_rows(const Graph& graph, const Node& node) {
  if (node.op == &ops::einsum) return multiplies_rows(graph, node);
  if (node.op == &ops::bias_add) return graph.values[node.operands[1]].type.shape.size() == 1;
  return node.op == &ops::gather || node.op == &ops::slice || node.op == &ops::concat ||
         row_function_of(*node.op).has_value();
}

}  // namespace

std::map<ValueIndex, ValueIndex> form_rounds(GraphBuilder& g, NodeIndex first, ValueIndex structure,
                                             std::span<const ValueIndex> states, std::int64_t group) {
  const Graph graph = g.graph();  // as it was
  std::vector<NodeIndex> nodes, in, before, after;
  for (const NodeIndex n : graph.nodes.indices())
    if (!(n < first)) nodes.push_back(n);
  // What is gathered is there in the rounds alone, whatever it leads to.
  std::set<ValueIndex> waits, leads(states.begin(), states.end());
  ValueIndex rows;
  for (const NodeIndex n : nodes) {
    const Node& node = graph.nodes[n];
    if (node.op == &ops::gather) {
      rows = node.operands[0];
      leads.insert(node.results[0]);
    }
    if (node.op == &ops::gather ||
        std::ranges::any_of(node.operands, [&](ValueIndex operand) { return waits.contains(operand); }))
      waits.insert(node.results.begin(), node.results.end());
  }
  if (rows < 0) throw Error(ErrorKind::input, "nothing is gathered, so that no vertex waits for another");
  const auto slices_rows = [&](const Node& node) {
    return node.op == &ops::slice &&
           has_rows(graph.values[node.operands[0]].type, graph.values[structure].type);
  };
  std::set<NodeIndex> inside;
  for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
    const Node& node = graph.nodes[*n];
    const bool leading =
        std::ranges::any_of(node.results, [&](ValueIndex result) { return leads.contains(result); });
    if (!leading) continue;
    // A slice of rows costs nothing in the rounds.
    if (!waits.contains(node.results[0]) && !slices_rows(node)) continue;
    inside.insert(*n);
    leads.insert(node.operands.begin(), node.operands.end());
  }
  for (const NodeIndex n : nodes)
    (inside.contains(n) ? in : waits.contains(graph.nodes[n].results[0]) ? after : before).push_back(n);
  for (const NodeIndex n : in)
    if (const Node& node = graph.nodes[n]; !works_on_rows(graph, node))
      throw Error(
          ErrorKind::input,
          fmt::format("'{}' waits for what children publish, and leads to what is published; operator '{}' "
                      "cannot be done round by round, expected an einsum of rows with a weight [in, out], "
                      "bias_add with a bias [width], add, mul, scale, sigmoid, tanh, relu, slice or concat",
                      node.name, node.op->name));

  BodyMaker maker(graph, rows, structure);
  maker.take(in);
  for (const ValueIndex state : states) maker.note(state);
  for (const NodeIndex n : after)
    for (const ValueIndex operand : graph.nodes[n].operands) maker.give(operand);
  for (const ValueIndex state : states) maker.give(state);
  VertexBody body = maker.body();
  for (const ValueIndex state : states) body.states.push_back(maker.number(state));
  std::vector<TensorType> types;
  for (const ValueIndex operand : maker.operands()) types.push_back(graph.values[operand].type);
  for (const int value : needed_in_backward(body, types))
    if (std::ranges::find(body.results, value) == body.results.end()) body.results.push_back(value);

  // From here on the nodes are added anew.
  Graph& changed = g.graph();
  changed.nodes.resize(static_cast<std::size_t>(first));
  for (const NodeIndex n : nodes)
    for (const ValueIndex result : graph.nodes[n].results) changed.values[result].producer = {};
  std::map<ValueIndex, ValueIndex> map;
  for (const NodeIndex n : before) add_again(g, graph.nodes[n], map);
  maker.add_node(g, "rounds", body, group, "rounds", map);
  for (const NodeIndex n : after) add_again(g, graph.nodes[n], map);
  return map;
}

}  // namespace alpa
