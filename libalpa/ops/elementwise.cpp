#include <fmt/core.h>

#include <string>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

std::string names(std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t d = begin; d < end; ++d) text += fmt::format("d{} ", d);
  return text;
}

/// The bias has the trailing dimensions of x.
ShardingRule bias_rule(const OpCall& call) {
  if (call.operands.size() != 2)
    throw Error(ErrorKind::input, fmt::format("wants 2 operands, got {}", call.operands.size()));
  const std::size_t rank = call.operands[0].shape.size(), kept = call.operands[1].shape.size();
  if (kept > rank) throw Error(ErrorKind::input, "bias has more dimensions than what it is added to");
  return parse_rule(names(0, rank) + ", " + names(rank - kept, rank) + "->" + names(0, rank), call.operands);
}

/// (dy, x, bias) -> dx, dbias
ShardingRule bias_gradient_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size(), kept = call.operands[2].shape.size();
  const std::string all = names(0, rank), bias = names(rank - kept, rank);
  return parse_rule(all + ", " + all + ", " + bias + "->" + all + ", " + bias, call.operands);
}

ShardingRule reduce_leading_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size();
  const auto kept = static_cast<std::size_t>(call.attributes.integer("keep"));
  return parse_rule(names(0, rank) + "->" + names(rank - kept, rank), call.operands);
}

std::int64_t column_sums(const Shape& shape, std::int64_t width) {
  return column_sum_bytes(element_count(shape) / width, width);
}

std::int64_t leading_sums(const OpCall& call) {
  const Shape& shape = call.operands[0].shape;
  const Shape kept(shape.end() - call.attributes.integer("keep"), shape.end());
  return column_sums(shape, element_count(kept));
}

std::int64_t bias_sums(const OpCall& call) {
  return column_sums(call.operands[0].shape, element_count(call.operands[2].shape));
}

std::vector<ValueIndex> bias_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const auto kept = static_cast<std::int64_t>(g.type(node.operands[1]).shape.size());
  return {dy[0], g.add("reduce_leading", {dy[0]}, {{"keep", kept}}, node.name + ".grad1")};
}

std::vector<ValueIndex> bias_gelu_gradient(GraphBuilder& g, const Node& node,
                                           std::span<const ValueIndex> dy) {
  return g.add_all("bias_gelu_grad", {dy[0], node.operands[0], node.operands[1]}, {}, node.name + ".grad");
}

std::vector<ValueIndex> mul_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("mul", {dy[0], node.operands[1]}), g.add("mul", {dy[0], node.operands[0]})};
}

std::vector<ValueIndex> scale_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("scale", {dy[0]}, node.attributes)};
}

std::vector<ValueIndex> dropout_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("dropout", {dy[0]}, node.attributes)};
}

/// f'(x) * dy by the operator "<name>_grad".
std::vector<ValueIndex> activation_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return {g.add(std::string(node.op->name) + "_grad", {dy[0], node.operands[0]})};
}

/// f'(x) * dy by the operator "<name>_grad", of what became of x, which is kept in place of x.
std::vector<ValueIndex> gradient_of_result(GraphBuilder& g, const Node& node,
                                           std::span<const ValueIndex> dy) {
  return {g.add(std::string(node.op->name) + "_grad", {dy[0], node.results[0]})};
}

std::vector<ValueIndex> add_relu_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const ValueIndex gradient = g.add("relu_grad", {dy[0], node.results[0]});
  return {gradient, gradient};
}

}  // namespace

constinit const OpDef add{
    .name = "add",
    .rule = "..., ... -> ...",
    .linear_operands = kAllOperands,
    .gradient =
        [](GraphBuilder&, const Node&, std::span<const ValueIndex> dy) {
          return std::vector<ValueIndex>{dy[0], dy[0]};
        },
};

constinit const OpDef mul{
    .name = "mul",
    .rule = "..., ... -> ...",
    .gradient = mul_gradient,
};

// y = x * factor (attribute)
constinit const OpDef scale{
    .name = "scale",
    .rule = "... -> ...",
    .linear_operands = 1,
    .gradient = scale_gradient,
    .settings = "factor:number",
    .untimed = "factor",
};

constinit const OpDef bias_add{
    .name = "bias_add",
    .rule = "",
    .make_rule = bias_rule,
    .gradient = bias_gradient,
};

// Sums the leading dimensions away and keeps the last `keep` ones.
constinit const OpDef reduce_leading{
    .name = "reduce_leading",
    .rule = "",
    .make_rule = reduce_leading_rule,
    .linear_operands = 1,
    .cuda_workspace_bytes = leading_sums,
    .accumulates = true,
    .internal = true,
};

// Zeroes elements with probability `rate` and scales the others by 1 / (1 - rate). The draw of an element
// depends on (seed, step, attribute `stream`, sample, place in the sample) only, so forward and backward
// agree under every plan: philox_uniform_at(philox_key(seed, stream), step * 2^32 + sample, row-major index
// within the whole sample) < rate drops. Dimension 0 is the sample.
constinit const OpDef dropout{
    .name = "dropout",
    .rule = "... -> ...",
    .flops_per_point = 20,
    .only_in_training = true,
    .gradient = dropout_gradient,
    .settings = "rate:share",
    .random = true,
    .untimed = "rate stream",
};

// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), the form of GPT-2.
constinit const OpDef gelu{
    .name = "gelu", .rule = "... -> ...", .flops_per_point = 20, .gradient = activation_gradient};
constinit const OpDef gelu_grad{
    .name = "gelu_grad", .rule = "..., ... -> ...", .flops_per_point = 30, .internal = true};

// gelu(x + bias), for which x is kept and neither the sum nor a gradient of it is written twice.
constinit const OpDef bias_gelu{
    .name = "bias_gelu",
    .rule = "",
    .make_rule = bias_rule,
    .flops_per_point = 21,
    .gradient = bias_gelu_gradient,
    .fuses = "bias_add gelu",
    .internal = true,
};

// (dy, x, bias) -> dx, dbias
constinit const OpDef bias_gelu_grad{
    .name = "bias_gelu_grad",
    .rule = "",
    .make_rule = bias_gradient_rule,
    .flops_per_point = 32,
    .cuda_workspace_bytes = bias_sums,
    .internal = true,
};

// x * sigmoid(x)
constinit const OpDef silu{
    .name = "silu", .rule = "... -> ...", .flops_per_point = 15, .gradient = activation_gradient};
constinit const OpDef silu_grad{
    .name = "silu_grad", .rule = "..., ... -> ...", .flops_per_point = 20, .internal = true};

// 1 / (1 + exp(-x))
constinit const OpDef sigmoid{
    .name = "sigmoid", .rule = "... -> ...", .flops_per_point = 15, .gradient = gradient_of_result};
// (dy, y) -> dx
constinit const OpDef sigmoid_grad{
    .name = "sigmoid_grad", .rule = "..., ... -> ...", .flops_per_point = 3, .internal = true};

constinit const OpDef tanh{
    .name = "tanh", .rule = "... -> ...", .flops_per_point = 15, .gradient = gradient_of_result};
// (dy, y) -> dx
constinit const OpDef tanh_grad{
    .name = "tanh_grad", .rule = "..., ... -> ...", .flops_per_point = 3, .internal = true};

constinit const OpDef relu{.name = "relu", .rule = "... -> ...", .gradient = gradient_of_result};
constinit const OpDef add_relu{
    .name = "add_relu",
    .rule = "..., ... -> ...",
    .flops_per_point = 2,
    .gradient = add_relu_gradient,
    .fuses = "add relu",
    .internal = true,
};
// (dy, y) -> dx
constinit const OpDef relu_grad{.name = "relu_grad", .rule = "..., ... -> ...", .internal = true};

}  // namespace alpa::ops
