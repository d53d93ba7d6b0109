#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/rotary_rule.h"

namespace alpa::ops {
namespace {

std::int64_t cached_attention_scratch(const OpCall& call) {
  const Shape& keys = call.operands[3].shape;
  return keys[0] * keys[2] * (keys[1] + keys[3]) * dtype_bytes(DType::f32);
}

/// The scores of each query of each head.
std::int64_t cached_attention_scores(const OpCall& call) {
  const Shape& query = call.operands[0].shape;
  return query[0] * query[1] * query[2] * call.operands[3].shape[1] * dtype_bytes(DType::f32);
}

/// All keys and values that there is room for are read; of the caches a row is written.
std::int64_t cached_attention_bytes(const OpCall& call) {
  return 2 * (byte_count(call.operands[0]) + byte_count(call.operands[1]) + byte_count(call.operands[2])) +
         byte_count(call.operands[3]) + byte_count(call.operands[4]);
}

std::int64_t stored_bytes(const OpCall& call) { return 2 * byte_count(call.operands[1]); }

}  // namespace

// What takes the place of operators over a sequence where it comes a few tokens at a time. `places` [b, s]
// are the positions of these tokens in their sequences; -1: there is no token.

// (query, key, value, key cache, value cache, places) -> output, and the caches with keys and values at their
// places. A query sees what the caches have up to its own place. Attribute: scale (default 1/sqrt(k)).
constinit const OpDef cached_attention{
    .name = "cached_attention",
    .rule =
        "b s (g r) k, b s g k, b s g k, b t g k, b t g k, b s -> b s (g r) k, b t g k, b t g k "
        "| whole s t k r",
    .flops_per_point = 4,
    .bytes_moved = cached_attention_bytes,
    .cpu_workspace_bytes = cached_attention_scratch,
    .cuda_workspace_bytes = cached_attention_scores,
    .overwrites = {-1, 3, 4, -1},
    .ids = 5,
    .takes_no_id = true,
    .internal = true,
    .untimed = "scale",
};

// (x, places) -> x turned as `rotary` turns what is at these positions.
constinit const OpDef rotary_at{
    .name = "rotary_at",
    .rule = "",
    .make_rule = rotary_rule,
    .flops_per_point = 6,
    .ids = 1,
    .takes_no_id = true,
    .internal = true,
    .untimed = "theta",
};

// (state, x) -> x, as the state.
constinit const OpDef store{
    .name = "store",
    .rule = "..., ... -> ...",
    .flops_per_point = 0,
    .bytes_moved = stored_bytes,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
};

}  // namespace alpa::ops
