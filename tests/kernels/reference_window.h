#pragma once
#include <string>

#include "tests/kernels/reference_call.h"

namespace alpa {

inline std::size_t setting(const ReferenceCall& c, const std::string& name, const char* dimension,
                           std::int64_t otherwise) {
  return static_cast<std::size_t>(
      c.attributes.integer(name + dimension, c.attributes.integer(name, otherwise)));
}

/// How a window of `size` moves along `extent` elements.
struct Line {
  std::size_t extent, size, stride, padding, dilation, places;

  Line(const ReferenceCall& c, const char* dimension, std::size_t over, std::size_t of)
      : extent(over),
        size(of),
        stride(setting(c, "stride", dimension, 1)),
        padding(setting(c, "padding", dimension, 0)),
        dilation(setting(c, "dilation", dimension, 1)),
        places(0) {
    while (places * stride + (size - 1) * dilation < extent + 2 * padding) ++places;
  }

  /// What element `i` of the window lies on in place `at`; beyond the extent in the padding.
  std::size_t element(std::size_t at, std::size_t i) const { return at * stride + i * dilation - padding; }
};

}  // namespace alpa
