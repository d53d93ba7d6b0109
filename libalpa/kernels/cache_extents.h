#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "libalpa/kernels/kernel.h"

namespace alpa {

/// Extents of one call of cached_attention; `share` consecutive query heads use one group of the caches.
struct CacheExtents {
  std::int64_t samples, queries, heads, places, groups, share, width;
  float scale;

  explicit CacheExtents(const KernelShape& shape)
      : samples(shape.operands[0].shape[0]),
        queries(shape.operands[0].shape[1]),
        heads(shape.operands[0].shape[2]),
        places(shape.operands[3].shape[1]),
        groups(shape.operands[3].shape[2]),
        share(heads / groups),
        width(shape.operands[0].shape[3]),
        scale(
            static_cast<float>(shape.attributes.number("scale", 1 / std::sqrt(static_cast<double>(width))))) {
  }
};

}  // namespace alpa
