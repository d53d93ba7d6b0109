#pragma once
#include <algorithm>
#include <cstdint>

#include "libalpa/base/float_types.h"

namespace alpa {

template <class T>
void add_weighted(const T* row, float weight, std::int64_t n, float* sum) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * to_float(row[c]);
}

/// to = the sum, in f32, of the rows that `add_rows(add)` names one after the other, by calling
/// add(row, weight). It is asked for each 256 columns anew, whose sums stay in registers and caches.
template <class T, class AddRows>
void sum_weighted_rows(std::int64_t width, T* to, const AddRows& add_rows) {
  constexpr std::int64_t most = 256;
  float sum[most];
  for (std::int64_t first = 0; first < width; first += most) {
    const std::int64_t n = std::min(most, width - first);
    std::fill(sum, sum + n, 0.0f);
    add_rows([&](const T* row, float weight) { add_weighted(row + first, weight, n, sum); });
    for (std::int64_t c = 0; c < n; ++c) to[first + c] = from_float<T>(sum[c]);
  }
}

}  // namespace alpa
