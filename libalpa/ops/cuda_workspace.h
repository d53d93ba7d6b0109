#pragma once
#include <algorithm>
#include <cstdint>

#include "libalpa/graph/op.h"

namespace alpa {

// What CUDA kernels of several operators take beside operands and results, for the operators' descriptions
// and for the kernels, which agree so.

/// Pieces in which rows are summed for each column, before these are.
inline std::int64_t column_sum_pieces(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 16, 1, 256);
}

/// Of a matrix; f32.
inline std::int64_t column_sum_bytes(std::int64_t rows, std::int64_t width) {
  return column_sum_pieces(rows) * width * static_cast<std::int64_t>(sizeof(float));
}

/// Stretches in which so many elements are summed, before these are.
inline std::int64_t double_sum_stretches(std::int64_t elements) {
  constexpr std::int64_t worth_a_stretch = 16 * 256, most = 512;
  return std::clamp<std::int64_t>(elements / worth_a_stretch, 1, most);
}

/// Of one sum in f64 over all elements of the operands.
inline std::int64_t double_sum_bytes(const OpCall& call) {
  std::int64_t stretches = 0;
  for (const TensorType& type : call.operands) stretches += double_sum_stretches(element_count(type.shape));
  return stretches * static_cast<std::int64_t>(sizeof(double));
}

/// So many f32 come before the workspace of products, which is aligned as buffers are.
inline std::int64_t numbers_before_products(std::int64_t numbers) {
  constexpr std::int64_t of_alignment = kAlignment / 4;
  return (numbers + of_alignment - 1) / of_alignment * of_alignment;
}

/// cuBLASLt is offered no algorithm that takes more.
inline constexpr std::int64_t kMatrixProductBytes = 32 << 20;

}  // namespace alpa
