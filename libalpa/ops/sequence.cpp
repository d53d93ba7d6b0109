#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

std::vector<ValueIndex> pool_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("pool_steps_grad", {dy[0], node.operands[1]}, {}, node.name + ".grad"), {}};
}

}  // namespace

// Sequences of several documents, one behind another.

// tokens -> for each the place of the first one of its document, which follows the last token `end` before
// it.
constinit const OpDef document_starts{
    .name = "document_starts",
    .rule = "b s -> b s | whole s",
    .result_types = "i32",
    .settings = "end:count",
    .ids = 0,
    .untimed = "end",
};

// Sequences of different lengths, padded to s steps.

// lengths -> 1 for each of the first `length` of s steps, with the attribute `mean` 1 / length; 0 beyond.
constinit const OpDef step_weights{
    .name = "step_weights",
    .rule = "b -> b s",
    .result_types = "f32",
    .settings = "size_s:integer mean:flag?",
    .ids = 0,
    .lengths_of = "s",
    .untimed = "mean",
};

// (x, weights) -> the sum over the steps of weight x. What a weight of 0 stands before is not looked at.
constinit const OpDef pool_steps{
    .name = "pool_steps",
    .rule = "b s ..., b s -> b ...",
    .linear_operands = 1,
    .flops_per_point = 2,
    .gradient = pool_gradient,
};

// (d sum, weights) -> d x
constinit const OpDef pool_steps_grad{
    .name = "pool_steps_grad",
    .rule = "b ..., b s -> b s ...",
    .linear_operands = 1,
    .internal = true,
};

}  // namespace alpa::ops
