#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

std::vector<ValueIndex> embedding_gradient(GraphBuilder& g, const Node& node,
                                           std::span<const ValueIndex> dy) {
  const std::int64_t vocabulary = g.type(node.operands[0]).shape[0];
  return {g.add("embedding_grad", {dy[0], node.operands[1]}, {{"size_v", vocabulary}}, node.name + ".grad"),
          {}};
}

/// The rows that are looked up, not the whole table.
std::int64_t embedding_bytes(const OpCall& call) {
  const std::int64_t ids = element_count(call.operands[1].shape);
  return byte_count(call.operands[1]) +
         2 * ids * call.operands[0].shape[1] * dtype_bytes(call.operands[0].dtype);
}

double embedding_flops(const OpCall&) { return 0; }

double embedding_grad_flops(const OpCall& call) {
  return static_cast<double>(element_count(call.operands[0].shape));
}

std::int64_t embedding_grad_bytes(const OpCall& call) {
  return 3 * byte_count(call.operands[0]) + call.attributes.integer("size_v") *
                                                call.operands[0].shape.back() *
                                                dtype_bytes(call.operands[0].dtype);
}

}  // namespace

// (table, ids) -> rows. A tile of the table gives zeros for ids outside it, so a split vocabulary leaves a
// sum.
constinit const OpDef embedding{
    .name = "embedding",
    .rule = "v d, b s -> b s d",
    .flops = embedding_flops,
    .bytes_moved = embedding_bytes,
    .looks_up_rows = true,
    .gradient = embedding_gradient,
    .ids = 1,
};

// (dy, ids) -> d table
constinit const OpDef embedding_grad{
    .name = "embedding_grad",
    .rule = "b s d, b s -> v d",
    .flops = embedding_grad_flops,
    .bytes_moved = embedding_grad_bytes,
    .adds_up_rows = true,
    .accumulates = true,
    .ids = 1,
    .takes_no_id = true,
    .internal = true,
};

// (dy, ids) -> a row for each id that is there, the sum of its dy, and these ids; after them rows of zeros
// with id -1. Once gathered those may be anything, and nobody reads them.
constinit const OpDef distinct_rows{
    .name = "distinct_rows",
    .rule = "b s d, b s -> b s d, b s | whole d",
    .result_types = "f32,i32",
    .flops = embedding_grad_flops,
    .joins_rows = true,
    .ids = 1,
    .takes_no_id = true,
    .internal = true,
};

}  // namespace alpa::ops
