#pragma once
#include "libalpa/kernels/attention_extents.h"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"

namespace alpa {

// Where the vectors of attention lie in global memory, and which of them a block of threads works on.

inline constexpr int kMostWidth = 128;

/// Vectors of one head in global memory: `count` of them, `stride` elements apart.
template <class T>
struct Vectors {
  T* data;
  std::int64_t stride, count;
};

/// One head of one batch element.
struct Head {
  std::int64_t batch, query, key;  ///< query and key: their heads

  /// Its vectors from row `first` on.
  template <class T>
  __device__ Vectors<T> queries(const AttentionExtents& e, T* tensor, std::int64_t first) const {
    return {tensor + ((batch * e.queries + first) * e.heads + query) * e.width, e.heads * e.width,
            e.queries - first};
  }
  template <class T>
  __device__ Vectors<T> keys(const AttentionExtents& e, T* tensor, std::int64_t first) const {
    return {tensor + ((batch * e.keys + first) * e.groups + key) * e.width, e.groups * e.width,
            e.keys - first};
  }

  /// Where the numbers of its queries begin in a tensor [batch, heads, queries].
  __device__ std::int64_t row_numbers(const AttentionExtents& e) const {
    return (batch * e.heads + query) * e.queries;
  }
};

/// The queries that a block of threads works on. Later ones see more keys; they come first so that no block
/// is left with a long one at the end.
struct QueryTile {
  Head head;
  std::int64_t first;

  __device__ QueryTile(const AttentionExtents& e, int rows) {
    const std::int64_t heads = e.batch * e.heads, block = blockIdx.x, query = block % e.heads;
    head = {block / e.heads % e.batch, query, query / e.share};
    first = ((e.queries + rows - 1) / rows - 1 - block / heads) * rows;
  }

  static dim3 blocks(const AttentionExtents& e, int rows) {
    return blocks_of(e.batch * e.heads * ((e.queries + rows - 1) / rows));
  }
};

/// The keys that a block of threads works on, for all queries of all heads that share them.
struct KeyTile {
  Head head;  ///< without a query head
  std::int64_t first;

  __device__ KeyTile(const AttentionExtents& e, int rows) {
    const std::int64_t block = blockIdx.x;
    head = {block / e.groups % e.batch, 0, block % e.groups};
    first = block / (e.batch * e.groups) * rows;
  }

  static dim3 blocks(const AttentionExtents& e, int rows) {
    return blocks_of(e.batch * e.groups * ((e.keys + rows - 1) / rows));
  }
};

/// Keys that queries see up to that position, counted from the first key; 0 or less: none.
__device__ inline std::int64_t seen_keys(const AttentionExtents& e, std::int64_t position) {
  return e.causal && position + 1 < e.keys ? position + 1 : e.keys;
}

/// The first key that a query sees, counted from the first of the call's.
__device__ inline std::int64_t first_key(const FirstKeys& first_keys, const AttentionExtents& e,
                                         std::int64_t batch, std::int64_t query) {
  if (!first_keys.global || query >= e.queries) return 0;
  const std::int64_t own = first_keys.global[batch * e.queries + query] - first_keys.origin;
  return own > 0 ? own : 0;
}

/// How many queries begin to see before that key: the first ones.
__device__ inline std::int64_t queries_that_begin_before(const FirstKeys& first_keys,
                                                         const AttentionExtents& e, std::int64_t batch,
                                                         std::int64_t key) {
  std::int64_t begin = 0, end = e.queries;
  if (!first_keys.global) return end;
  while (begin < end) {
    const std::int64_t middle = (begin + end) / 2;
    if (first_key(first_keys, e, batch, middle) < key)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Of a gradient, with p = softmax weights, dp = d output value^T and delta = the product of a row of d output
// with its output: d scores = p * (dp - delta), d query = scale * d scores key, d key = scale * d scores^T
// query, d value = p^T d output.
template <class T>
struct GradientOperands {
  const T *doutput, *query, *key, *value, *output;
  const float* log_sums;
  FirstKeys first_keys;
  std::int64_t position;  ///< of the first query, counted from the first key
  bool resumes;           ///< gradients are added to what the results hold

  GradientOperands(const KernelCall& call, const AttentionExtents& e)
      : doutput(call.operand<T>(0)),
        query(call.operand<T>(1)),
        key(call.operand<T>(2)),
        value(call.operand<T>(3)),
        output(call.operand<T>(4)),
        log_sums(call.operand<float>(5)),
        first_keys(call, 6, 2, e),
        position(query_position(call.operands[1], call.operands[2])),
        resumes(call.accumulate) {}

  /// The first query that sees key `first` or a later one; 0 where all do.
  __device__ std::int64_t first_to_see(const AttentionExtents& e, std::int64_t first) const {
    return e.causal && first > position ? first - position : 0;
  }
};

/// Calls body(std::integral_constant) with the smallest kWidth that holds `width`; nothing where none does.
template <class Body>
std::unique_ptr<Kernel> for_width(std::int64_t width, Body body) {
  if (width <= 32) return body(std::integral_constant<int, 32>{});
  if (width <= 64) return body(std::integral_constant<int, 64>{});
  if (width <= kMostWidth) return body(std::integral_constant<int, kMostWidth>{});
  return nullptr;
}

}  // namespace alpa
