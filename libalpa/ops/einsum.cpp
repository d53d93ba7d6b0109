#include <fmt/core.h>

#include <string>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

/// In how many places of a tensor a factor stands.
int count(const std::vector<DimensionFactors>& dimensions, int factor) {
  int n = 0;
  for (const DimensionFactors& dimension : dimensions)
    for (const int f : dimension) n += f == factor;
  return n;
}

/// The rule of an equation, each of whose factors stands in `at_least` of its tensors or more, and at most
/// once in each.
ShardingRule rule_from_equation(const OpCall& call, std::size_t operands, int at_least) {
  const std::string& equation = call.attributes.text("equation");
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::input, fmt::format("'{}' {}", equation, why));
  };
  if (equation.find('|') != std::string::npos) refuse("has a '|', which equations do not have");
  if (call.operands.size() != operands)
    refuse(fmt::format("is applied to {} operands, expected {}", call.operands.size(), operands));
  ShardingRule rule = parse_rule(equation, call.operands, size_attributes(call.attributes));
  if (rule.results.size() != 1) refuse("has more than one result");
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    int tensors = 0;
    for (const auto* side : {&rule.operands, &rule.results})
      for (const auto& tensor : *side) {
        const int times = count(tensor, static_cast<int>(f));
        if (times > 1) refuse(fmt::format("has '{}' twice in one tensor", rule.factors[f].name));
        tensors += times;
      }
    if (tensors < at_least) refuse(fmt::format("has '{}' in one tensor only", rule.factors[f].name));
  }
  return rule;
}

ShardingRule einsum_rule(const OpCall& call) { return rule_from_equation(call, 2, 2); }
ShardingRule rearrange_rule(const OpCall& call) { return rule_from_equation(call, 1, 2); }

struct Equation {
  std::string left, right, result;
};

Equation split_equation(const std::string& text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

/// An equation, with the sizes of its factors where a product "(h k)" may leave them open.
Attributes equation_settings(GraphBuilder& g, const Node& node, const std::string& equation) {
  Attributes attributes{{"equation", equation}};
  if (equation.find('(') == std::string::npos) return attributes;
  std::vector<TensorType> types;
  for (const ValueIndex operand : node.operands) types.push_back(g.type(operand));
  for (const Factor& factor : rule_of(*node.op, {types, node.attributes}).factors)
    attributes.set("size_" + factor.name, factor.size);
  return attributes;
}

std::vector<ValueIndex> einsum_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const Equation e = split_equation(node.attributes.text("equation"));
  const ValueIndex x = node.operands[0], w = node.operands[1];
  const Attributes of_x = equation_settings(g, node, fmt::format("{},{}->{}", e.result, e.right, e.left));
  const Attributes of_w = equation_settings(g, node, fmt::format("{},{}->{}", e.left, e.result, e.right));
  return {g.add("einsum", {dy[0], w}, of_x, node.name + ".grad0"),
          g.add("einsum", {x, dy[0]}, of_w, node.name + ".grad1")};
}

std::vector<ValueIndex> rearrange_gradient(GraphBuilder& g, const Node& node,
                                           std::span<const ValueIndex> dy) {
  const std::string& pattern = node.attributes.text("equation");
  const std::size_t arrow = pattern.find("->");
  const std::string inverse = pattern.substr(arrow + 2) + "->" + pattern.substr(0, arrow);
  return {g.add("rearrange", {dy[0]}, equation_settings(g, node, inverse))};
}

}  // namespace

// result[...] = sum over the factors it lacks of left[...] * right[...]: every matrix product of the suite.
constinit const OpDef einsum{
    .name = "einsum",
    .rule = "",
    .make_rule = einsum_rule,
    .flops_per_point = 2,
    .cuda_workspace_bytes = [](const OpCall&) { return kMatrixProductBytes; },
    .is_product = true,
    .accumulates = true,
    .gradient = einsum_gradient,
    .settings = "equation:text",
};

// Reshape and transpose as one pattern, "b s (h k) -> b h s k".
constinit const OpDef rearrange{
    .name = "rearrange",
    .rule = "",
    .make_rule = rearrange_rule,
    .linear_operands = 1,
    .flops_per_point = 0,
    .gradient = rearrange_gradient,
    .settings = "equation:text size_*:integer?",
};

}  // namespace alpa::ops
