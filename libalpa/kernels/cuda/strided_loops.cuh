#pragma once
#include <optional>
#include <vector>

#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"

namespace alpa {

/// Nested loops as a kernel's parameter: trip i, counted innermost first, lies at these offsets in each
/// tensor.
struct StridedLoops {
  static constexpr int kMost = 12;

  int count = 0;
  std::int64_t size[kMost], left[kMost], right[kMost], result[kMost];

  struct Offsets {
    std::int64_t left = 0, right = 0, result = 0;
  };

  __device__ Offsets at(std::int64_t trip) const {
    Offsets offsets;
    for (int d = count - 1; d >= 0; --d) {
      const std::int64_t place = trip % size[d];
      trip /= size[d];
      offsets.left += place * left[d];
      offsets.right += place * right[d];
      offsets.result += place * result[d];
    }
    return offsets;
  }
};

/// Nothing where there are more loops than a kernel takes.
inline std::optional<StridedLoops> strided_loops(const std::vector<ContractionLoop>& loops) {
  if (loops.size() > StridedLoops::kMost) return std::nullopt;
  StridedLoops strided{};
  for (const ContractionLoop& loop : loops) {
    const int d = strided.count++;
    strided.size[d] = loop.size;
    strided.left[d] = loop.left;
    strided.right[d] = loop.right;
    strided.result[d] = loop.result;
  }
  return strided;
}

}  // namespace alpa
