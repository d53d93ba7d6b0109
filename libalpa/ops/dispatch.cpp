#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

Attributes expert_sizes(const GraphBuilder& g, ValueIndex rows) {
  const Shape& shape = g.type(rows).shape;
  return {{"size_e", shape[0]}, {"size_c", shape[2]}};
}

std::vector<ValueIndex> dispatch_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("dispatch_grad", {dy[0], node.operands[1]}, {}, node.name + ".grad"), {}};
}

std::vector<ValueIndex> combine_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const ValueIndex rows = node.operands[0], slots = node.operands[1], weights = node.operands[2];
  return {g.add("combine_grad_rows", {dy[0], slots, weights}, expert_sizes(g, rows), node.name + ".grad0"),
          {},
          g.add("combine_grad_weights", {dy[0], rows, slots}, {}, node.name + ".grad2")};
}

double no_flops(const OpCall&) { return 0; }

/// A product and a sum for each number of the experts' rows, those of operand `rows`.
template <int rows>
double row_flops(const OpCall& call) {
  return 2.0 * static_cast<double>(element_count(call.operands[rows].shape));
}

double weighted_copy_flops(const OpCall& call) {
  const double tokens = static_cast<double>(element_count(call.operands[1].shape));
  return tokens * static_cast<double>(call.operands[0].shape.back());
}

}  // namespace

// Tokens to the rows of experts and back, as the slots of `top_k_slots` say: c rows for each expert e and
// group g. No slot is given twice in a group. A tile of the experts holds, or adds up, what lies in it: a
// split e of what combines them leaves a sum, and turning a split of g into one of e between these operators
// is the all-to-all of expert parallelism.

// slots -> how many choices of each token were dropped
constinit const OpDef dropped{
    .name = "dropped",
    .rule = "g s k -> g s",
    .result_types = "f32",
    .ids = 0,
};

// (tokens, slots) -> the experts' rows, zero where no token is
constinit const OpDef dispatch{
    .name = "dispatch",
    .rule = "g s d, g s k -> e g c d | whole s k c",
    .linear_operands = 1,
    .flops = no_flops,
    .gradient = dispatch_gradient,
    .settings = "size_e:integer size_c:integer",
    .ids = 1,
};

// (d rows, slots) -> d tokens
constinit const OpDef dispatch_grad{
    .name = "dispatch_grad",
    .rule = "e g c d, g s k -> g s d | whole s k c",
    .linear_operands = 1,
    .flops = row_flops<0>,
    .ids = 1,
    .internal = true,
};

// (rows, slots, weights) -> for each token the weighted sum of its rows; a dropped choice adds nothing
constinit const OpDef combine{
    .name = "combine",
    .rule = "e g c d, g s k, g s k -> g s d | whole s k c",
    .linear_operands = 1,
    .flops = row_flops<0>,
    .gradient = combine_gradient,
    .ids = 1,
};

// (d tokens, slots, weights) -> d rows
constinit const OpDef combine_grad_rows{
    .name = "combine_grad_rows",
    .rule = "g s d, g s k, g s k -> e g c d | whole s k c",
    .linear_operands = 1,
    .flops = weighted_copy_flops,
    .ids = 1,
    .internal = true,
};

// (d tokens, rows, slots) -> d weights, the products of a token's gradient with its rows
constinit const OpDef combine_grad_weights{
    .name = "combine_grad_weights",
    .rule = "g s d, e g c d, g s k -> g s k | whole s k c",
    .result_types = "f32",
    .linear_operands = 1,
    .flops = row_flops<1>,
    .ids = 2,
    .internal = true,
};

}  // namespace alpa::ops
