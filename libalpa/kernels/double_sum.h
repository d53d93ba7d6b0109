#pragma once
#include <array>
#include <cstdint>

#include "libalpa/base/bfloat16.h"
#include "libalpa/kernels/cpu/host_loops.h"

namespace alpa {

enum class Power { one, two };

template <Power power, class T>
double double_sum_of_range(const T* x, std::int64_t begin, std::int64_t end) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i) {
    const auto element = static_cast<double>(to_float(x[i]));
    sum += power == Power::one ? element : element * element;
  }
  return sum;
}

/// Sum of x[i] or of its squares over all elements in f64, in an order that depends on `count` alone.
template <Power power, class T>
double double_sum(const T* x, std::int64_t count) {
  constexpr std::int64_t most_pieces = 64;
  const std::int64_t wanted = count / kElementGrain + 1, pieces = wanted < most_pieces ? wanted : most_pieces;
  std::array<double, most_pieces> sums{};
  for_pieces(count, pieces, [=, &sums](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    sums[piece] = double_sum_of_range<power>(x, begin, end);
  });
  double total = 0;
  for (std::int64_t p = 0; p < pieces; ++p) total += sums[p];
  return total;
}

}  // namespace alpa
