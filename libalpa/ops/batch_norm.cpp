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
ShardingRule norm_add_rule(const OpCall& call) { return batch_rule("X, S, S, c, c, X -> X", call); }
ShardingRule sums_rule(const OpCall& call) { return batch_rule("X, X, S, S -> S, S", call); }
ShardingRule grad_rule(const OpCall& call) { return batch_rule("X, X, S, S, c, S, S -> X", call); }
ShardingRule relu_sums_rule(const OpCall& call) { return batch_rule("X, X, S, S, c, c -> S, S", call); }
ShardingRule relu_grad_rule(const OpCall& call) { return batch_rule("X, X, S, S, c, c, S, S -> X", call); }

/// Of a batch norm as a function of x, gain and bias: mean and variance are those of x. "<name>_sums" and
/// "<name>_grad" are given those operands, the latter the sums behind them.
std::vector<ValueIndex> gradient_by_sums(GraphBuilder& g, const Node& node, const std::string& name,
                                         const std::vector<ValueIndex>& of_sums,
                                         std::vector<ValueIndex> of_grad) {
  const std::vector<ValueIndex> sums =
      g.add_all(name + "_sums", of_sums, node.attributes, node.name + ".sums");
  of_grad.insert(of_grad.end(), sums.begin(), sums.end());
  const ValueIndex dx = g.add(name + "_grad", of_grad, node.attributes, node.name + ".grad");
  const Attributes keep{{"keep", std::int64_t{1}}};
  return {dx, {}, {}, g.add("reduce_leading", {sums[1]}, keep), g.add("reduce_leading", {sums[0]}, keep)};
}

std::vector<ValueIndex> gradient_of_norm(GraphBuilder& g, const Node& node, ValueIndex dy) {
  const std::vector<ValueIndex>& of = node.operands;
  return gradient_by_sums(g, node, "batch_norm", {dy, of[0], of[1], of[2]}, {dy, of[0], of[1], of[2], of[3]});
}

std::vector<ValueIndex> batch_norm_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return gradient_of_norm(g, node, dy[0]);
}

std::vector<ValueIndex> batch_norm_relu_gradient(GraphBuilder& g, const Node& node,
                                                 std::span<const ValueIndex> dy) {
  std::vector<ValueIndex> operands{dy[0]};
  operands.insert(operands.end(), node.operands.begin(), node.operands.end());
  return gradient_by_sums(g, node, "batch_norm_relu", operands, operands);
}

std::vector<ValueIndex> batch_norm_add_relu_gradient(GraphBuilder& g, const Node& node,
                                                     std::span<const ValueIndex> dy) {
  const ValueIndex of_sum = g.add("relu_grad", {dy[0], node.results[0]});
  std::vector<ValueIndex> gradients = gradient_of_norm(g, node, of_sum);
  gradients.push_back(of_sum);
  return gradients;
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
    .linear_operands = 1,
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

// A residual's other operand is added before the ReLU.
constinit const OpDef batch_norm_add_relu{
    .name = "batch_norm_add_relu",
    .rule = "",
    .make_rule = norm_add_rule,
    .flops_per_point = 5,
    .gradient = batch_norm_add_relu_gradient,
    .fuses = "batch_norm add_relu",
    .internal = true,
    .untimed = "epsilon",
};

// (dy, x, mean, variance) -> over each group the sums of dy and of dy * h, with h = (x - mean) / deviation
constinit const OpDef batch_norm_sums{
    .name = "batch_norm_sums",
    .rule = "",
    .make_rule = sums_rule,
    .result_types = "f32,f32",
    .linear_operands = 1,
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

// The same where a ReLU follows, dy being the gradient of what it makes: where that is 0, dy counts as 0. Of
// what is read anyway, x, they find again where that is, so neither its result is read nor a masked dy
// written. (dy, x, mean, variance, gain, bias) -> the sums
constinit const OpDef batch_norm_relu_sums{
    .name = "batch_norm_relu_sums",
    .rule = "",
    .make_rule = relu_sums_rule,
    .result_types = "f32,f32",
    .linear_operands = 1,
    .flops_per_point = 8,
    .internal = true,
    .untimed = "epsilon",
};

// (dy, x, mean, variance, gain, bias, sum of dy, sum of dy * h) -> dx
constinit const OpDef batch_norm_relu_grad{
    .name = "batch_norm_relu_grad",
    .rule = "",
    .make_rule = relu_grad_rule,
    .flops_per_point = 10,
    .internal = true,
    .untimed = "epsilon",
};

}  // namespace alpa::ops
