#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// A rule in which X stands for a tensor [(m b) ... c] of m groups of b samples, S for its statistics.
ShardingRule batch_rule(std::string_view pattern, const OpCall& call) {
  std::string places, notation;
  if (!call.operands.empty())
    for (std::size_t d = 1; d + 1 < call.operands[0].shape.size(); ++d)
      places += "p" + std::to_string(d) + " ";
  for (const char letter : pattern)
    notation += letter == 'X' ? "(m b) " + places + "c" : letter == 'S' ? "m c" : std::string(1, letter);
  return parse_rule(notation + " | whole " + places, call.operands, size_attributes(call.attributes));
}

ShardingRule mean_rule(const OpCall& call) { return batch_rule("X -> S", call); }
ShardingRule variance_rule(const OpCall& call) { return batch_rule("X, S -> S", call); }
ShardingRule batch_norm_rule(const OpCall& call) { return batch_rule("X, S, S, c, c -> X", call); }
ShardingRule sums_rule(const OpCall& call) { return batch_rule("X, X, S, S -> S, S", call); }
ShardingRule grad_rule(const OpCall& call) { return batch_rule("X, X, S, S, c, S, S -> X", call); }

/// Of a batch_norm, whose result has the gradient dy, as a function of x, gain and bias: mean and variance
/// are those of x.
std::vector<ValueIndex> gradient_of_norm(GraphBuilder& g, const Node& node, ValueIndex dy) {
  const ValueIndex x = node.operands[0], mean = node.operands[1], variance = node.operands[2];
  const std::vector<ValueIndex> sums =
      g.add_all("batch_norm_sums", {dy, x, mean, variance}, node.attributes, node.name + ".sums");
  const ValueIndex dx = g.add("batch_norm_grad", {dy, x, mean, variance, node.operands[3], sums[0], sums[1]},
                              node.attributes, node.name + ".grad");
  const Attributes keep{{"keep", std::int64_t{1}}};
  return {dx, {}, {}, g.add("reduce_leading", {sums[1]}, keep), g.add("reduce_leading", {sums[0]}, keep)};
}

std::vector<ValueIndex> batch_norm_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return gradient_of_norm(g, node, dy[0]);
}

std::vector<ValueIndex> batch_norm_relu_gradient(GraphBuilder& g, const Node& node,
                                                 std::span<const ValueIndex> dy) {
  return gradient_of_norm(g, node, g.add("relu_grad", {dy[0], node.results[0]}));
}

}  // namespace

// Batch normalisation in three steps, each with an ordinary reduction over the samples b of a group (`size_b`
// of them), so that a group may be split:
//   u = channel_mean(x), v = channel_variance(x, u), y = batch_norm(x, u, v, gain, bias).
// The gradient is taken as a whole by batch_norm, so u and v stop gradients.
constinit const OpDef channel_mean{
    .name = "channel_mean",
    .rule = "",
    .make_rule = mean_rule,
    .result_types = "f32",
    .linear = Linearity::first_operand,
    .settings = "size_b:integer",
};

constinit const OpDef channel_variance{
    .name = "channel_variance",
    .rule = "",
    .make_rule = variance_rule,
    .result_types = "f32",
    .flops_per_point = 3,
    .settings = "size_b:integer",
};

// (statistic, its running average) -> the statistic itself while training, the average for each group in
// evaluation. The average moves towards the mean over the groups of a step, times `correction`, by `momentum`
// of what lies between.
constinit const OpDef running_statistic{
    .name = "running_statistic",
    .rule = "m c, c -> m c",
    .flops_per_point = 0,
    .running_average = 1,
    .settings = "momentum:share correction:number?",
    .untimed = "momentum correction",
};

// (average, sum of the statistic over a step's groups, scalars) -> average; `groups` is those of a
// micro-batch.
constinit const OpDef running_update{
    .name = "running_update",
    .rule = "..., ..., k -> ... | whole k",
    .flops_per_point = 4,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
    .untimed = "momentum correction groups",
};

// (x - mean) / sqrt(variance + epsilon) * gain + bias
constinit const OpDef batch_norm{
    .name = "batch_norm",
    .rule = "",
    .make_rule = batch_norm_rule,
    .flops_per_point = 3,
    .gradient = batch_norm_gradient,
    .settings = "size_b:integer epsilon:positive",
    .untimed = "epsilon",
};

constinit const OpDef batch_norm_relu{
    .name = "batch_norm_relu",
    .rule = "",
    .make_rule = batch_norm_rule,
    .flops_per_point = 4,
    .gradient = batch_norm_relu_gradient,
    .fuses = "batch_norm relu",
    .internal = true,
    .untimed = "epsilon",
};

// (dy, x, mean, variance) -> over each group the sums of dy and of dy * h, with h = (x - mean) / deviation
constinit const OpDef batch_norm_sums{
    .name = "batch_norm_sums",
    .rule = "",
    .make_rule = sums_rule,
    .result_types = "f32,f32",
    .linear = Linearity::first_operand,
    .flops_per_point = 5,
    .internal = true,
    .untimed = "epsilon",
};

// (dy, x, mean, variance, gain, sum of dy, sum of dy * h) -> dx
constinit const OpDef batch_norm_grad{
    .name = "batch_norm_grad",
    .rule = "",
    .make_rule = grad_rule,
    .flops_per_point = 7,
    .internal = true,
    .untimed = "epsilon",
};

}  // namespace alpa::ops
