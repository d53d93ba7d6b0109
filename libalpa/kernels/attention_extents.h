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

  /// Keys of the call up to the last one that a query sees at that position, counted from the first of them.
  std::int64_t visible(std::int64_t position) const {
    return causal ? std::clamp(position + 1, std::int64_t{0}, keys) : keys;
  }
};

/// From which key on queries see any, where a call has an operand [batch, queries] that says so.
struct FirstKeys {
  const std::int32_t* global = nullptr;  ///< null: from the first on
  std::int64_t queries = 0;
  std::int64_t origin = 0;  ///< of the call's keys

  /// `at`: the operand's index; `key`: that of the keys.
  FirstKeys(const KernelCall& call, std::size_t at, std::size_t key, const AttentionExtents& e)
      : global(call.operands.size() > at ? call.operand<std::int32_t>(at) : nullptr),
        queries(e.queries),
        origin(origin_of(call.operands[key], 1)) {}

  /// Counted from the first of the call's keys.
  std::int64_t of(std::int64_t batch, std::int64_t query) const {
    return global ? std::max<std::int64_t>(global[batch * queries + query] - origin, 0) : 0;
  }
};

}  // namespace alpa
