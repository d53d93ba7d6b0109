#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// A sum of extents is no product of factors: the joined dimension is a factor of its own, and whole.
ShardingRule concat_rule(const OpCall& call) {
  std::int64_t width = 0;
  for (const TensorType& type : call.operands) width += type.shape.empty() ? 0 : type.shape.back();
  return parse_rule("... c, ... d -> ... e | whole c d e", call.operands, {{"e", width}});
}

std::vector<ValueIndex> concat_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  std::vector<ValueIndex> gradients;
  std::int64_t begin = 0;
  for (const ValueIndex operand : node.operands) {
    const std::int64_t width = g.type(operand).shape.back();
    gradients.push_back(g.add("slice", {dy[0]}, {{"begin", begin}, {"size_c", width}}, node.name + ".grad"));
    begin += width;
  }
  return gradients;
}

void check_part(const OpCall& call, std::int64_t part, std::int64_t whole) {
  const std::int64_t begin = call.attributes.integer("begin");
  if (begin + part > whole)
    throw Error(ErrorKind::input,
                fmt::format("{} elements from {} on are not part of {}", part, begin, whole));
}

ShardingRule slice_rule(const OpCall& call) {
  ShardingRule rule =
      parse_rule("... e -> ... c | whole e c", call.operands, size_attributes(call.attributes));
  check_part(call, call.attributes.integer("size_c"), call.operands[0].shape.back());
  return rule;
}
ShardingRule slice_grad_rule(const OpCall& call) {
  ShardingRule rule =
      parse_rule("... c -> ... e | whole c e", call.operands, size_attributes(call.attributes));
  check_part(call, call.operands[0].shape.back(), call.attributes.integer("size_e"));
  return rule;
}

std::vector<ValueIndex> slice_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const Attributes of{{"begin", node.attributes.integer("begin")},
                      {"size_e", g.type(node.operands[0]).shape.back()}};
  return {g.add("slice_grad", {dy[0]}, of, node.name + ".grad")};
}

}  // namespace

// (x [... c], y [... d]) -> [... (c + d)]: the channels of y after those of x.
constinit const OpDef concat{
    .name = "concat",
    .rule = "",
    .make_rule = concat_rule,
    .linear_operands = kAllOperands,
    .flops_per_point = 0,
    .gradient = concat_gradient,
};

// x [... e] -> [... c]: `size_c` channels from `begin` on.
constinit const OpDef slice{
    .name = "slice",
    .rule = "",
    .make_rule = slice_rule,
    .linear_operands = 1,
    .flops_per_point = 0,
    .gradient = slice_gradient,
    .settings = "begin:count size_c:integer",
    .untimed = "begin",
};

// dy [... c] -> [... e]: its channels from `begin` on, and 0 elsewhere.
constinit const OpDef slice_grad{
    .name = "slice_grad",
    .rule = "",
    .make_rule = slice_grad_rule,
    .linear_operands = 1,
    .flops_per_point = 0,
    .internal = true,
    .untimed = "begin",
};

}  // namespace alpa::ops
