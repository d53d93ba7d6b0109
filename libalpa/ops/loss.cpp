#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

std::vector<ValueIndex> cross_entropy_gradient(GraphBuilder& g, const Node& node,
                                               std::span<const ValueIndex> dy) {
  const auto& in = node.operands;
  return {
      g.add("cross_entropy_grad", {in[0], in[1], in[2], in[3], dy[0]}, node.attributes, node.name + ".grad"),
      {},
      {},
      {}};
}

std::vector<ValueIndex> reduce_sum_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return {g.add("expand_like", {node.operands[0], dy[0]})};
}

}  // namespace

// Softmax cross-entropy in three steps, each an ordinary reduction over the vocabulary v, so that v may be
// sharded:
//   m = row_max(logits), z = row_sum_exp(logits, m), loss = cross_entropy(logits, targets, m, z) = log z + m
//   - logits[target].
// The loss does not depend on m, and the gradient is taken as a whole by cross_entropy, so m and z stop
// gradients. Setting `words` (default 0: all): the columns that count; those beyond are the vocabulary's
// padding.
constinit const OpDef row_max{.name = "row_max",
                              .rule = "... v -> ... | max v",
                              .result_types = "f32",
                              .settings = "words:count?",
                              .untimed = "words"};

constinit const OpDef row_sum_exp{.name = "row_sum_exp",
                                  .rule = "... v, ... -> ...",
                                  .result_types = "f32",
                                  .flops_per_point = 10,
                                  .settings = "words:count?",
                                  .untimed = "words"};

// A tile of the vocabulary contributes the loss of the targets that lie in it; a target of -1 has none.
constinit const OpDef cross_entropy{
    .name = "cross_entropy",
    .rule = "... v, ..., ..., ... -> ...",
    .result_types = "f32",
    .flops =
        [](const OpCall& call) { return 4.0 * static_cast<double>(element_count(call.operands[1].shape)); },
    .bytes_moved = [](const OpCall& call) { return 5 * byte_count(call.operands[1]); },
    .gradient = cross_entropy_gradient,
    .settings = "words:count?",
    .ids = 1,
    .takes_no_id = true,
    .untimed = "words",
};

// (logits, targets, m) -> 1 where no logit is above the target's, m being the largest; a target of -1 is
// never the best.
constinit const OpDef is_best{
    .name = "is_best",
    .rule = "... v, ..., ... -> ...",
    .result_types = "f32",
    .flops = [](const OpCall& call) { return static_cast<double>(element_count(call.operands[1].shape)); },
    .bytes_moved = [](const OpCall& call) { return 4 * byte_count(call.operands[1]); },
    .ids = 1,
    .takes_no_id = true,
};

// (logits, targets, m, z, d loss) -> (softmax - one hot) * d loss
constinit const OpDef cross_entropy_grad{.name = "cross_entropy_grad",
                                         .rule = "... v, ..., ..., ..., ... -> ... v",
                                         .flops_per_point = 12,
                                         .ids = 1,
                                         .takes_no_id = true,
                                         .internal = true,
                                         .untimed = "words"};

// Attribute `weight` (default 1) multiplies the sum; lowering sets it to 1 / copies.
constinit const OpDef reduce_sum{
    .name = "reduce_sum",
    .rule = "... -> ",
    .result_types = "f32",
    .linear_operands = 1,
    .cuda_workspace_bytes = double_sum_bytes,
    .is_total = true,
    .accumulates = true,
    .gradient = reduce_sum_gradient,
    .untimed = "weight",
};

// (x, scalar) -> the scalar in the shape and type of x
constinit const OpDef expand_like{
    .name = "expand_like",
    .rule = "..., -> ...",
    .internal = true,
};

}  // namespace alpa::ops
