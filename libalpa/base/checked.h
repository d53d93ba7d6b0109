#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "libalpa/base/limits.h"

namespace alpa {

// Arithmetic on counts that come from outside (elements, bytes, devices, layers): nothing where 64 bits do
// not hold the result, which the caller refuses in words of its own. Operands are not negative.

inline std::optional<std::int64_t> checked_product(std::optional<std::int64_t> a, std::int64_t b) {
  std::int64_t product = 0;
  if (!a || __builtin_mul_overflow(*a, b, &product)) return {};
  return product;
}

inline std::optional<std::int64_t> checked_sum(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  std::int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return {};
  return sum;
}

/// Elements of a tensor of these extents; nothing beyond kMostElements.
inline std::optional<std::int64_t> checked_element_count(std::span<const std::int64_t> extents) {
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t extent : extents) {
    count = checked_product(count, extent);
    if (!count || *count > kMostElements) return {};
  }
  return count;
}

}  // namespace alpa
