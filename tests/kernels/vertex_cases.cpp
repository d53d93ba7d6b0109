#include <fmt/core.h>

#include "libalpa/ops/vertex.h"
#include "tests/kernels/cases.h"

namespace alpa {
namespace {

using I = std::int64_t;

/// Samples, vertices of each, children, samples of a group, numbers of a state.
struct Extents {
  I samples, vertices, children, group, hidden;
};

/// A vertex function being written: x [b v 3] and the structure are there.
struct Function {
  explicit Function(const Extents& extents) : e(extents), g(vertex_catalog()) {
    g.begin_layer("cell");
    x = input({DType::f32, {e.samples, e.vertices, 3}}, "x");
    structure = input({DType::i32, {e.samples, e.vertices, e.children + 1}}, "structure");
    first = NodeIndex(g.graph().nodes.size());
  }

  ValueIndex input(const TensorType& type, const std::string& name) {
    return g.input(InputKind::data, type, name);
  }
  ValueIndex weight(const Shape& shape) {
    return g.state(fmt::format("w{}", g.graph().states.size()), {DType::f32, shape}, {}, true);
  }
  ValueIndex product(ValueIndex rows, I width) {
    return g.add("einsum", {rows, weight({g.type(rows).shape.back(), width})},
                 {{"equation", std::string("b v d, d e -> b v e")}});
  }
  ValueIndex slice(ValueIndex rows, I begin, I width) {
    return g.add("slice", {rows}, {{"begin", begin}, {"size_c", width}});
  }
  ValueIndex gather(int state, bool sum = false) { return add_gather(g, x, structure, state, e.hidden, sum); }

  Extents e;
  GraphBuilder g;
  ValueIndex x, structure;
  NodeIndex first;
};

/// Tai et al. (ACL'15), the child-sum form as Cavs has it: one forget gate for each child.
std::vector<ValueIndex> tree_lstm(Function& f) {
  GraphBuilder& g = f.g;
  const I h = f.e.hidden;
  const ValueIndex from_x = g.add("bias_add", {f.product(f.x, 4 * h), f.weight({4 * h})}),
                   below = f.gather(0), cells = f.gather(1), iou = f.product(f.gather(0, true), 3 * h);
  const auto gate = [&](const char* function, int i) {
    return g.add(function, {g.add("add", {f.slice(from_x, i * h, h), f.slice(iou, i * h, h)})});
  };
  ValueIndex cell = g.add("mul", {gate("sigmoid", 0), gate("tanh", 2)});
  const ValueIndex forget = f.weight({h, h});
  for (I c = 0; c < f.e.children; ++c) {
    const ValueIndex product = g.add("einsum", {f.slice(below, c * h, h), forget},
                                     {{"equation", std::string("b v d, d e -> b v e")}});
    const ValueIndex keeps = g.add("sigmoid", {g.add("add", {product, f.slice(from_x, 3 * h, h)})});
    cell = g.add("add", {cell, g.add("mul", {keeps, f.slice(cells, c * h, h)})});
  }
  return {g.add("mul", {gate("sigmoid", 1), g.add("tanh", {cell})}), cell};
}

/// relu([children] W + x V), as Cavs has it.
std::vector<ValueIndex> tree_fc(Function& f) {
  const ValueIndex sum = f.g.add("add", {f.product(f.gather(0), f.e.hidden), f.product(f.x, f.e.hidden)});
  return {f.g.add("relu", {f.g.add("bias_add", {sum, f.weight({f.e.hidden})})})};
}

/// Gates of what the children add up to; a state that is used whole and in parts.
std::vector<ValueIndex> gated(Function& f) {
  GraphBuilder& g = f.g;
  const I h = f.e.hidden;
  const ValueIndex sum = f.gather(0, true), both = f.gather(0);
  const ValueIndex gates = g.add("sigmoid", {g.add("add", {f.product(sum, 2 * h), f.product(f.x, 2 * h)})});
  const ValueIndex reset = f.slice(gates, 0, h), update = f.slice(gates, h, h);
  ValueIndex kept = f.product(both, h);
  for (I c = 0; c < f.e.children; ++c) kept = g.add("add", {kept, f.slice(both, c * h, h)});
  const ValueIndex joined = g.add("concat", {g.add("mul", {reset, sum}), kept});
  const ValueIndex candidate = g.add("tanh", {f.product(joined, h)});
  const ValueIndex old = g.add("mul", {update, sum}), part = g.add("mul", {update, candidate});
  const ValueIndex rest = g.add("add", {candidate, g.add("scale", {part}, {{"factor", -1.0}})});
  return {g.add("add", {old, rest})};
}

/// States that are parts of one value, which nothing else has; one of its parts leads nowhere, another is
/// shown alone, and so is what the children published.
std::vector<ValueIndex> in_parts(Function& f) {
  GraphBuilder& g = f.g;
  const I h = f.e.hidden;
  const ValueIndex sums = g.add("add", {f.product(f.gather(0, true), 4 * h), f.product(f.x, 4 * h)});
  const ValueIndex both = g.add("mul", {sums, f.product(f.gather(1), 4 * h)});
  g.add("relu", {g.add("add", {f.slice(both, 2 * h, h), f.slice(f.gather(1), 0, h)})});
  return {f.slice(both, 0, h), f.slice(both, h, h)};
}

std::string operands_text(const Graph& graph, const Node& node, ValueIndex structure) {
  std::string text;
  for (const ValueIndex operand : node.operands)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", operand == structure ? 'g' : 'f',
                        type_text(graph.values[operand].type).substr(3));
  return text;
}

/// What nodes from `first` on make for no other.
std::vector<ValueIndex> unused(const Graph& graph, NodeIndex first) {
  std::vector<ValueIndex> values;
  for (const NodeIndex n : graph.nodes.indices())
    if (!(n < first)) values.push_back(graph.nodes[n].results[0]);
  for (const Node& node : graph.nodes)
    for (const ValueIndex operand : node.operands) std::erase(values, operand);
  return values;
}

void add_function(std::vector<OpCase>& cases, const Extents& e, std::vector<ValueIndex> (*write)(Function&),
                  const RoundsForm& form) {
  Function f(e);
  const std::vector<ValueIndex> states = write(f), shown = unused(f.g.graph(), f.first);
  form_rounds(f.g, f.first, f.structure, states, shown, e.group, form);
  for (const NodeIndex n : f.g.graph().nodes.indices()) {
    const Node node = f.g.graph().nodes[n];
    if (node.op->name != "rounds") continue;
    cases.push_back({"rounds", operands_text(f.g.graph(), node, f.structure), node.attributes});
    std::vector<ValueIndex> gradients(node.results.size());
    for (std::size_t r = 0; r < gradients.size(); ++r) {  // of the first alone, and of all
      gradients[r] = f.g.input(InputKind::data, f.g.type(node.results[r]), "gradient");
      if (r == 0 || r + 1 == gradients.size()) node.op->gradient(f.g, node, gradients);
    }
  }
  for (const Node& node : f.g.graph().nodes)
    if (node.op->name == "rounds_grad")
      cases.push_back({"rounds_grad", operands_text(f.g.graph(), node, f.structure), node.attributes});
}

}  // namespace

void add_vertex_cases(std::vector<OpCase>& cases) {
  constexpr RoundsForm forms[] = {{}, {false, false, true}};  // all, and all that can be in rounds
  for (const auto& write : {tree_lstm, tree_fc, gated, in_parts}) {
    for (const Extents& e : {Extents{2, 5, 2, 1, 2}, {4, 3, 2, 2, 3}, {3, 6, 1, 3, 3}, {2, 40, 3, 2, 37}})
      for (const RoundsForm& form : forms) add_function(cases, e, write, form);
    for (const RoundsForm& form :
         {RoundsForm{false, true, true}, {true, false, true}, {true, true, false}, {false, false, false}})
      add_function(cases, {4, 3, 2, 2, 3}, write, form);
    add_function(cases, {2, 39, 3, 2, 37}, write, {true, true, false});
    add_function(cases, {1, 3, 2, 1, 150}, write, {});  // more than one stretch of a pass
  }
}

}  // namespace alpa
