#include <string>

#include <fmt/core.h>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

ShardingRule rule_from_equation(const OpCall& call) {
  return parse_rule(call.attributes.text("equation"), call.operands, size_attributes(call.attributes));
}

struct Equation {
  std::string left, right, result;
};

Equation split_equation(const std::string& text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

std::vector<int> einsum_gradient(GraphBuilder& g, const Node& node, std::span<const int> dy) {
  const Equation e = split_equation(node.attributes.text("equation"));
  const int x = node.operands[0], w = node.operands[1];
  return {g.add("einsum", {dy[0], w}, {{"equation", fmt::format("{},{}->{}", e.result, e.right, e.left)}}, node.name + ".grad0"),
          g.add("einsum", {x, dy[0]}, {{"equation", fmt::format("{},{}->{}", e.left, e.result, e.right)}}, node.name + ".grad1")};
}

std::vector<int> rearrange_gradient(GraphBuilder& g, const Node& node, std::span<const int> dy) {
  const std::string& pattern = node.attributes.text("equation");
  const std::size_t arrow = pattern.find("->");
  Attributes attributes = node.attributes;
  attributes.set("equation", pattern.substr(arrow + 2) + "->" + pattern.substr(0, arrow));
  for (const Factor& factor : rule_of(*node.op, {std::vector<TensorType>{g.type(node.operands[0])}, node.attributes}).factors)
    attributes.set("size_" + factor.name, factor.size);
  return {g.add("rearrange", {dy[0]}, attributes)};
}

}  // namespace

// result[...] = sum over the factors it lacks of left[...] * right[...]: every matrix product of the suite.
constinit const OpDef einsum{
    .name = "einsum",
    .rule = "",
    .make_rule = rule_from_equation,
    .flops_per_point = 2,
    .accumulates = true,
    .gradient = einsum_gradient,
    .settings = "equation:text",
};

// Reshape and transpose as one pattern, "b s (h k) -> b h s k".
constinit const OpDef rearrange{
    .name = "rearrange",
    .rule = "",
    .make_rule = rule_from_equation,
    .linear = Linearity::first_operand,
    .flops_per_point = 0,
    .gradient = rearrange_gradient,
    .settings = "equation:text size_*:integer?",
};

}  // namespace alpa::ops
