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

/// Whether rounds can do it for a row.
bool can_be_in_rounds(const Graph& graph, const Node& node) {
  return node.op == &ops::gather || works_on_rows(*node.op, {operand_types(graph, node), node.attributes});
}

}  // namespace

std::map<ValueIndex, ValueIndex> form_rounds(GraphBuilder& g, NodeIndex first, ValueIndex structure,
                                             std::span<const ValueIndex> states,
                                             std::span<const ValueIndex> outputs, std::int64_t group,
                                             const RoundsForm& form) {
  const Graph graph = g.graph();  // as it was
  std::vector<NodeIndex> nodes;
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
    if (node.op == &ops::gather || uses_any(node, waits))
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
  RoundsParts parts;
  for (const NodeIndex n : nodes)
    (inside.contains(n)                          ? parts.in
     : waits.contains(graph.nodes[n].results[0]) ? parts.after
                                                 : parts.before)
        .push_back(n);
  for (const NodeIndex n : parts.in)
    if (const Node& node = graph.nodes[n]; !can_be_in_rounds(graph, node))
      throw Error(
          ErrorKind::input,
          fmt::format("'{}' waits for what children publish, and leads to what is published; operator '{}' "
                      "cannot be done round by round, expected an einsum of rows with a weight [in, out], "
                      "bias_add with a bias [width], add, mul, scale, sigmoid, tanh, relu, slice or concat",
                      node.name, node.op->name));

  move_into_rounds(graph, structure, !form.eager, !form.lazy, parts);

  BodyMaker maker(graph, rows, structure);
  maker.take(parts.in);
  for (const ValueIndex state : states) maker.note(state);
  for (const NodeIndex n : parts.after)
    for (const ValueIndex operand : graph.nodes[n].operands) maker.give(operand);
  for (const ValueIndex state : states) maker.give(state);
  for (const ValueIndex output : outputs) maker.give(output);
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
  for (const NodeIndex n : parts.before) add_again(g, graph.nodes[n], map);
  maker.add_node(g, "rounds", body, group, form, "rounds", map);
  for (const NodeIndex n : parts.after) add_again(g, graph.nodes[n], map);
  return map;
}

}  // namespace alpa
