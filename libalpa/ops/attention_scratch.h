#pragma once
#include <cstdint>

#include "libalpa/graph/op.h"

namespace alpa {

/// How the CPU kernels of attention and attention_grad cut their work, and the scratch memory that takes.
///
/// Scores exist only as tiles of kQueryBlock rows by kKeyBlock keys. Each worker has its own scratch; there
/// are never more workers than kMostWorkers or tasks, so the bound does not depend on the machine.
struct AttentionScratch {
  static constexpr std::int64_t kQueryBlock = 64, kKeyBlock = 256, kMostWorkers = 64;

  /// One worker's pieces, in floats. Those of bf16 calls hold sums until they are rounded and, as the
  /// processor multiplies, blocks converted to f32 or tiles rounded to bf16.
  std::int64_t tiles = 0;           ///< of scores: one (forward) or two (gradient)
  std::int64_t row_values = 0;      ///< two per query row
  std::int64_t query_blocks = 0;    ///< bf16: two blocks of queries, outputs or their gradients
  std::int64_t key_block = 0;       ///< bf16: a block of keys, of which the next two have two each
  std::int64_t key_values = 0;      ///< bf16: keys and values converted, or tiles rounded
  std::int64_t key_gradients = 0;   ///< bf16 gradient: of keys and values
  std::int64_t query_gradient = 0;  ///< bf16 gradient: of all queries that share a key head

  std::int64_t workers = 0;  ///< at most

  std::int64_t floats_per_worker() const {
    return tiles + row_values + query_blocks + key_values + key_gradients + query_gradient;
  }
  std::int64_t bytes() const { return workers * floats_per_worker() * 4; }
};

/// `call` is an attention (3 operands) or an attention_grad (6).
AttentionScratch attention_scratch(const OpCall& call);

}  // namespace alpa
