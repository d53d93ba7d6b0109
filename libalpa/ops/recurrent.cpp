#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/recurrent_scratch.h"

namespace alpa::ops {
namespace {

/// The notation's rule for gates of that number, with a hidden size that is the weight's on both sides.
ShardingRule recurrent_rule(const OpCall& call, std::string_view notation, std::int64_t gates) {
  ShardingRule rule = parse_rule(notation, call.operands);
  std::int64_t in = 0, out = 0;
  for (const Factor& factor : rule.factors) {
    if (factor.name == "k") in = factor.size;
    if (factor.name == "h") out = factor.size;
    if (factor.name == "g" && factor.size != gates)
      throw Error(ErrorKind::input, fmt::format("wants {} gates, got {}", gates, factor.size));
  }
  if (in != out)
    throw Error(ErrorKind::input,
                fmt::format("the weight takes a hidden state of {}, but gives one of {}", in, out));
  return rule;
}

ShardingRule lstm_rule(const OpCall& call) {
  return recurrent_rule(call, "b s g h, k g h, b -> b s h, b s h, b s g h | whole s g h k", 4);
}
ShardingRule gru_rule(const OpCall& call) {
  return recurrent_rule(call, "b s g h, k g h, g h, b -> b s h, b s g h, b s h | whole s g h k", 3);
}

std::int64_t workspace(const OpCall& call) {
  return RecurrentScratch(call.operands[0], call.operands[1], false).bytes();
}
std::int64_t grad_workspace(const OpCall& call) {
  return RecurrentScratch(call.operands[3], call.operands[4], true).bytes();
}

/// Of the recurrent weight: a product over all steps of what it was multiplied by and of what it gave.
ValueIndex weight_gradient(GraphBuilder& g, const Node& node, ValueIndex previous, ValueIndex products) {
  return g.add("einsum", {previous, products}, {{"equation", std::string("b s k, b s g h -> k g h")}},
               node.name + ".grad1");
}

std::vector<ValueIndex> lstm_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const std::vector<ValueIndex> results = g.add_all(
      "lstm_grad",
      {dy[0], node.results[0], node.results[1], node.results[2], node.operands[1], node.operands[2]},
      node.attributes, node.name + ".grad");
  return {results[0], weight_gradient(g, node, results[1], results[0]), {}};
}

std::vector<ValueIndex> gru_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const std::vector<ValueIndex> results = g.add_all(
      "gru_grad",
      {dy[0], node.results[0], node.results[2], node.results[1], node.operands[1], node.operands[3]},
      node.attributes, node.name + ".grad");
  const ValueIndex bias =
      g.add("reduce_leading", {results[1]}, {{"keep", std::int64_t{2}}}, node.name + ".grad2");
  return {results[0], weight_gradient(g, node, results[2], results[1]), bias, {}};
}

}  // namespace

// Recurrent layers over sequences of `lengths` steps, padded to s: one product of the hidden state with the
// weight per step; what the input adds to the gates comes ready made, from one einsum over all steps. The
// state starts at zero, at the first step or, with the attribute `reverse`, at the last within the length;
// beyond the length all results are zero. Samples may be split. Steps wait for one another, and each needs
// the whole hidden state: splitting it (h with all its gates, k) would be a collective per step.
//
// The gates are kept as activations. They take the place of the gates before the activation, which nothing
// needs then; working them out again would be a third product.

// (gates [b s 4 h] in the order input, forget, cell, output, weight [h 4 h], lengths) -> hidden states,
// cells, activations (Hochreiter and Schmidhuber, 1997; forget gates of Gers et al., 2000):
//   i, f, g, o = sigmoid, sigmoid, tanh, sigmoid(gates + hidden weight);  cell = f cell + i g;
//   hidden = o tanh(cell)
constinit const OpDef lstm{
    .name = "lstm",
    .rule = "",
    .make_rule = lstm_rule,
    .flops_per_point = 2,
    .cpu_workspace_bytes = workspace,
    .gradient = lstm_gradient,
    .settings = "reverse:flag?",
    .ids = 2,
    .lengths_of = "s",
    .untimed = "reverse",
};

// (d hidden, hidden, cells, activations, weight, lengths) -> d gates, and the hidden state before each step
constinit const OpDef lstm_grad{
    .name = "lstm_grad",
    .rule = "b s h, b s h, b s h, b s g h, k g h, b -> b s g h, b s h | whole s g h k",
    .flops_per_point = 2,
    .cpu_workspace_bytes = grad_workspace,
    .ids = 5,
    .lengths_of = "s",
    .internal = true,
    .untimed = "reverse",
};

// (gates [b s 3 h] in the order reset, update, new, weight [h 3 h], bias [3 h], lengths) -> hidden states,
// activations, and the recurrent part of the new gate. The form of cuDNN and PyTorch, where the reset gate
// multiplies the product (Cho et al., 2014, multiply the state): with p = hidden weight + bias,
//   r, z = sigmoid(gates + p);  n = tanh(gate + r p);  hidden = (1 - z) n + z hidden
constinit const OpDef gru{
    .name = "gru",
    .rule = "",
    .make_rule = gru_rule,
    .flops_per_point = 2,
    .cpu_workspace_bytes = workspace,
    .gradient = gru_gradient,
    .settings = "reverse:flag?",
    .ids = 3,
    .lengths_of = "s",
    .untimed = "reverse",
};

// (d hidden, hidden, recurrent part of the new gate, activations, weight, lengths) -> d gates, d p, and the
// hidden state before each step
constinit const OpDef gru_grad{
    .name = "gru_grad",
    .rule = "b s h, b s h, b s h, b s g h, k g h, b -> b s g h, b s g h, b s h | whole s g h k",
    .flops_per_point = 2,
    .cpu_workspace_bytes = grad_workspace,
    .ids = 5,
    .lengths_of = "s",
    .internal = true,
    .untimed = "reverse",
};

}  // namespace alpa::ops
