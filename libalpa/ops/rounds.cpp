#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "libalpa/graph/vertex_rows.h"
#include "libalpa/ops/body_maker.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"
#include "libalpa/ops/vertex_gradient.h"
#include "libalpa/ops/vertex_program.h"
#include "libalpa/ops/vertex_states.h"

namespace alpa::ops {
namespace {

/// Rows are split by whole groups of samples, of which sums over rows are terms; all else is whole.
ShardingRule rounds_rule(const OpCall& call) {
  const auto operands = static_cast<int>(call.operands.size());
  const VertexBody body = body_of(call.attributes, operands, vertex_catalog());
  const std::vector<TensorType> types = value_types(body, call.operands);
  const auto rows = static_cast<int>(call.attributes.integer("rows"));
  std::string from, to, whole = "b v";
  std::map<std::string, std::int64_t> sizes{{"b", call.attributes.integer("size_b")}};
  const auto name = [&whole](std::string text) {
    whole += " " + text;
    return text;
  };
  for (int i = 0; i < operands; ++i) {
    const std::size_t rank = call.operands[static_cast<std::size_t>(i)].shape.size();
    if (i > 0) from += ", ";
    if (i < rows) from += "(m b) v";
    for (std::size_t d = i < rows ? 2 : 0; d < rank; ++d) from += " " + name(fmt::format("i{}d{}", i, d));
  }
  for (std::size_t r = 0; r < body.results.size(); ++r) {
    const TensorType& type = types[static_cast<std::size_t>(body.results[r])];
    if (r > 0) to += ", ";
    if (!is_sum_over_rows(type)) to += "(m b) v";
    for (std::size_t d = is_sum_over_rows(type) ? 0 : 2; d < type.shape.size(); ++d) {
      const std::string extent = name(fmt::format("r{}d{}", r, d));
      to += " " + extent;
      sizes[extent] = type.shape[d];
    }
  }
  return parse_rule(from + " -> " + to + " | whole " + whole, call.operands, sizes);
}

/// The share of all rows that typical data takes.
double typical_share(const OpCall& call) {
  const std::vector<std::int64_t> rounds = typical_rounds_of(call.attributes);
  if (rounds.empty()) return 1;
  const std::int64_t rows = call.attributes.integer("size_b") * call.operands[0].shape[1];
  return static_cast<double>(rows_of(rounds)) / static_cast<double>(rows);
}

/// Weights are read anew for each round, and sums over rows read and written.
std::int64_t rounds_bytes(const OpCall& call) {
  const auto operands = static_cast<int>(call.operands.size());
  const VertexBody body = body_of(call.attributes, operands, vertex_catalog());
  const std::vector<TensorType> types = value_types(body, call.operands);
  const auto with_rows = static_cast<std::size_t>(call.attributes.integer("rows"));
  double of_rows = 0, of_weights = 0;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    (i < with_rows ? of_rows : of_weights) += static_cast<double>(byte_count(call.operands[i]));
  for (const int result : body.results) {
    const TensorType& type = types[static_cast<std::size_t>(result)];
    (is_sum_over_rows(type) ? of_weights : of_rows) +=
        static_cast<double>(byte_count(type)) * (is_sum_over_rows(type) ? 2 : 1);
  }
  const auto rounds = std::max<std::int64_t>(1, std::ssize(typical_rounds_of(call.attributes)));
  const double groups =
      static_cast<double>(call.operands[0].shape[0]) / static_cast<double>(call.attributes.integer("size_b"));
  return std::llround(of_rows * typical_share(call) + of_weights * groups * static_cast<double>(rounds));
}

double rounds_flops(const OpCall& call) {
  const VertexBody body = body_of(call.attributes, static_cast<int>(call.operands.size()), vertex_catalog());
  const std::vector<TensorType> types = value_types(body, call.operands);
  double flops = 0;
  for (const VertexBody::Step& step : body.steps) {
    std::vector<TensorType> of;
    for (const int value : step.of) of.push_back(types[static_cast<std::size_t>(value)]);
    flops += flops_of(*step.op, {of, step.attributes});
  }
  return flops * typical_share(call);
}

std::int64_t rounds_workspace(const OpCall& call) { return vertex_program(call).scratch_bytes(); }
std::int64_t rounds_cuda_workspace(const OpCall& call) {
  const VertexProgram program = vertex_program(call, RoundOrder::streams);
  return 4 * numbers_before_products(program.scratch) + program.streams_used() * kMatrixProductBytes;
}

/// Slices of the forward, which cost nothing, are taken again where they are needed: of a kept value once.
void add_slices(const Graph& graph, int forward_nodes, RoundsParts& parts) {
  const auto slices_for = [&](const std::vector<const std::vector<NodeIndex>*>& lists) {
    std::set<ValueIndex> used;
    for (const std::vector<NodeIndex>* list : lists)
      for (const NodeIndex n : *list)
        used.insert(graph.nodes[n].operands.begin(), graph.nodes[n].operands.end());
    std::vector<NodeIndex> slices;
    for (int i = forward_nodes - 1; i >= 0; --i) {
      const Node& node = graph.nodes[NodeIndex(i)];
      if (node.op != &slice || !used.contains(node.results[0])) continue;
      slices.insert(slices.begin(), NodeIndex(i));
      used.insert(node.operands[0]);
    }
    return slices;
  };
  const std::vector<NodeIndex> inside = slices_for({&parts.in}),
                               outside = slices_for({&parts.before, &parts.after});
  parts.in.insert(parts.in.begin(), inside.begin(), inside.end());
  parts.before.insert(parts.before.begin(), outside.begin(), outside.end());
}

/// Where the backward's nodes are done.
RoundsParts parts_of(const VertexGradient& gradient, const RoundsForm& form) {
  const Graph& graph = gradient.graph;
  std::set<ValueIndex> wanted, leads, waits;
  for (const ValueIndex of : gradient.of_operands)
    if (of >= 0) wanted.insert(of);
  for (const VertexGradient::Return& each : gradient.returns) {
    wanted.insert(each.value);
    leads.insert(each.value);
  }
  for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= gradient.forward_nodes; --i) {
    const Node& node = graph.nodes[NodeIndex(i)];
    if (wanted.contains(node.results[0])) wanted.insert(node.operands.begin(), node.operands.end());
    if (leads.contains(node.results[0])) leads.insert(node.operands.begin(), node.operands.end());
  }
  RoundsParts parts;
  for (int i = gradient.forward_nodes; i < std::ssize(graph.nodes); ++i) {
    const Node& node = graph.nodes[NodeIndex(i)];
    const ValueIndex result = node.results[0];
    if (!wanted.contains(result)) continue;
    if (node.op == &received || uses_any(node, waits)) waits.insert(result);
    std::vector<NodeIndex>& part = !waits.contains(result)                          ? parts.before
                                   : node.op == &received || leads.contains(result) ? parts.in
                                                                                    : parts.after;
    part.push_back(NodeIndex(i));
  }
  // The gradient of what is done after the rounds is done before theirs.
  move_into_rounds(graph, gradient.values[1], !form.lazy, !form.lazy, parts);
  add_slices(graph, gradient.forward_nodes, parts);
  return parts;
}

std::vector<ValueIndex> rounds_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  std::vector<TensorType> types;
  for (const ValueIndex operand : node.operands) types.push_back(g.type(operand));
  const VertexBody body = body_of(node.attributes, static_cast<int>(node.operands.size()), vertex_catalog());
  std::vector<bool> with_gradient;
  for (const ValueIndex each : dy) with_gradient.push_back(each >= 0);
  const VertexGradient gradient = gradient_of(body, types, with_gradient);
  // What the backward takes of the forward are operands and results of it.
  std::map<ValueIndex, ValueIndex> map;
  for (std::size_t i = 0; i < node.operands.size(); ++i) map[gradient.values[i]] = node.operands[i];
  for (std::size_t r = 0; r < body.results.size(); ++r)
    map[gradient.values[static_cast<std::size_t>(body.results[r])]] = node.results[r];
  for (std::size_t r = 0; r < dy.size(); ++r)
    if (dy[r] >= 0) map[gradient.of_results[r]] = dy[r];

  const RoundsForm form = rounds_form_of(node.attributes);
  const RoundsParts parts = parts_of(gradient, form);
  for (const NodeIndex n : parts.before) add_again(g, gradient.graph.nodes[n], map);
  BodyMaker maker(gradient.graph, gradient.values[0], gradient.values[1]);
  maker.take(parts.in);
  for (const VertexGradient::Return& each : gradient.returns) maker.note(each.value);
  for (const NodeIndex n : parts.after)
    for (const ValueIndex operand : gradient.graph.nodes[n].operands) maker.give(operand);
  for (const ValueIndex of : gradient.of_operands)
    if (of >= 0) maker.give(of);
  VertexBody backward = maker.body();
  for (const VertexGradient::Return& each : gradient.returns)
    backward.returns.push_back({maker.number(each.value), each.state, each.to_each});
  maker.add_node(g, "rounds_grad", backward, node.attributes.integer("size_b"), form, node.name + ".grad",
                 map);
  for (const NodeIndex n : parts.after) add_again(g, gradient.graph.nodes[n], map);
  std::vector<ValueIndex> of_operands;
  for (const ValueIndex of : gradient.of_operands) of_operands.push_back(of < 0 ? ValueIndex() : map.at(of));
  return of_operands;
}

}  // namespace

// (rows, structure, more rows ..., weights ...) -> rows: the steps of the attribute `body` for all vertices,
// round by round; `rows` says how many operands come before the weights. Rows that no vertex has become 0.
constinit const OpDef rounds{
    .name = "rounds",
    .rule = "",
    .make_rule = rounds_rule,
    .flops = rounds_flops,
    .bytes_moved = rounds_bytes,
    .cpu_workspace_bytes = rounds_workspace,
    .cuda_workspace_bytes = rounds_cuda_workspace,
    .gradient = rounds_gradient,
    .ids = 1,
    .takes_no_id = true,
    .runs_rounds = true,
    .internal = true,
};

// The same from the last round to the first, with what parents give back to their children
// (VertexBody::returns).
constinit const OpDef rounds_grad{
    .name = "rounds_grad",
    .rule = "",
    .make_rule = rounds_rule,
    .flops = rounds_flops,
    .bytes_moved = rounds_bytes,
    .cpu_workspace_bytes = rounds_workspace,
    .cuda_workspace_bytes = rounds_cuda_workspace,
    .ids = 1,
    .takes_no_id = true,
    .runs_rounds = true,
    .internal = true,
};

}  // namespace alpa::ops
