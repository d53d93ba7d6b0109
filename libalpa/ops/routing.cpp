#include "libalpa/ops/routing.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

void check_choices(std::int64_t choices, std::int64_t experts) {
  if (choices < 1 || choices > experts || choices > kMostChoices)
    throw Error(ErrorKind::input, fmt::format("'size_k' is {}, expected from 1 to the {} experts, {} at most",
                                              choices, experts, kMostChoices));
}

ShardingRule slots_rule(const OpCall& call) {
  ShardingRule rule =
      parse_rule("g s e -> g s k | whole s e k", call.operands, size_attributes(call.attributes));
  const std::int64_t capacity = call.attributes.integer("capacity");
  check_choices(call.attributes.integer("size_k"), call.operands[0].shape[2]);
  if (capacity < 1)
    throw Error(ErrorKind::input, fmt::format("'capacity' is {}, expected 1 or more", capacity));
  return rule;
}

ShardingRule weights_rule(const OpCall& call) {
  ShardingRule rule =
      parse_rule("g s e -> g s k | whole s e k", call.operands, size_attributes(call.attributes));
  check_choices(call.attributes.integer("size_k"), call.operands[0].shape[2]);
  return rule;
}

std::vector<ValueIndex> weights_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  Attributes attributes;
  attributes.set("normalize", node.attributes.integer("normalize", 1));
  return {g.add("top_k_weights_grad", {node.operands[0], dy[0]}, attributes, node.name + ".grad")};
}

std::vector<ValueIndex> balance_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("balance_loss_grad", {node.operands[0], dy[0]}, {}, node.name + ".grad")};
}

}  // namespace

// Routing of tokens to experts (GShard, ICLR'21, algorithm 1), within groups g of s tokens. A token chooses
// the k experts of the largest logits, the lower expert where they are equal; its gates are softmax(logits).
// Each of these operators works the choices out anew from the logits, which is cheap beside the product that
// gave them.

// logits -> the slot, expert * capacity + place, of each choice of each token; -1 where the expert is full.
// Places are given to all first choices in the order of the tokens, then to all second choices, and so on.
constinit const OpDef top_k_slots{
    .name = "top_k_slots",
    .rule = "",
    .make_rule = slots_rule,
    .result_types = "i32",
    .settings = "size_k:integer capacity:integer",
};

// logits -> the gates of the chosen experts; with `normalize` (default 1) divided by their sum.
constinit const OpDef top_k_weights{
    .name = "top_k_weights",
    .rule = "",
    .make_rule = weights_rule,
    .result_types = "f32",
    .flops_per_point = 2,
    .gradient = weights_gradient,
    .settings = "size_k:integer normalize:flag?",
};

// (logits, d weights) -> d logits
constinit const OpDef top_k_weights_grad{
    .name = "top_k_weights_grad",
    .rule = "g s e, g s k -> g s e | whole s e k",
    .flops_per_point = 4,
    .internal = true,
};

// logits -> each token's part, e * sum over experts of gate * (share of the group's first choices that went
// there). Over a group they sum to s times GShard's loss e * sum of (mean gate * share), which is 1 where all
// is balanced. The shares are constants to the gradient.
constinit const OpDef balance_loss{
    .name = "balance_loss",
    .rule = "g s e -> g s | whole s e",
    .result_types = "f32",
    .flops_per_point = 12,
    .gradient = balance_gradient,
};

// (logits, d losses) -> d logits
constinit const OpDef balance_loss_grad{
    .name = "balance_loss_grad",
    .rule = "g s e, g s -> g s e | whole s e",
    .flops_per_point = 16,
    .internal = true,
};

}  // namespace alpa::ops
