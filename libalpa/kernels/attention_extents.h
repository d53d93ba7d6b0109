#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "libalpa/graph/attributes.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/attention_scratch.h"

namespace alpa {

/// Position of the first query, counted from the first key: both may be part of a longer sequence.
inline std::int64_t query_position(const Tile& query, const Tile& key) {
  return origin_of(query, 1) - origin_of(key, 1);
}

/// Extents of one attention call. Queries are [b, s, heads, k], keys and values [b, t, groups, k]; `share`
/// consecutive query heads use one key head.
struct AttentionExtents {
  std::int64_t batch, queries, heads, width, keys, groups, share;
  bool causal;
  float scale;

  AttentionExtents(const TensorType& query, const TensorType& key, const Attributes& attributes)
      : batch(query.shape[0]),
        queries(query.shape[1]),
        heads(query.shape[2]),
        width(query.shape[3]),
        keys(key.shape[1]),
        groups(key.shape[2]),
        share(heads / groups),
        causal(attributes.integer("causal", 0) != 0),
        scale(static_cast<float>(attributes.number("scale", 1.0 / std::sqrt(static_cast<double>(width))))) {}

  std::int64_t query_blocks() const {
    return (queries + AttentionScratch::kQueryBlock - 1) / AttentionScratch::kQueryBlock;
  }
  std::int64_t key_blocks() const {
    return (keys + AttentionScratch::kKeyBlock - 1) / AttentionScratch::kKeyBlock;
  }

  /// Of one product of queries and keys, or of scores and values.
  std::int64_t flops() const { return 2 * batch * heads * queries * keys * width; }

  /// Keys of the call that a query sees at that position, counted from the first of them.
  std::int64_t visible(std::int64_t position) const {
    return causal ? std::clamp(position + 1, std::int64_t{0}, keys) : keys;
  }
};

}  // namespace alpa
