#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// A tensor's elements in f64, row-major, whatever its element type.
using Values = std::vector<double>;

/// The bytes of the elements, rounded to the type, and back.
std::vector<std::byte> packed(const Values&, DType);
Values unpacked(const std::vector<std::byte>&, DType);

/// As stored in that type: rounded and widened again.
Values rounded(const Values&, DType);

/// Uniform draws from [low, high), the same for the same arguments.
Values uniform_values(std::int64_t count, double low, double high, std::uint64_t seed);

/// The box of `extent` elements at `origin` of a dense tensor.
Values slice(const Values& tensor, const Shape& whole, const Shape& origin, const Shape& extent);

/// Calls body(index in the whole tensor, index in the box) for every element of the box.
template <class Body>
void for_box(const Shape& whole, const Shape& origin, const Shape& extent, const Body& body) {
  const std::int64_t count = element_count(extent);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, index = 0, stride = 1;
    for (std::size_t d = extent.size(); d-- > 0;) {
      index += (origin[d] + rest % extent[d]) * stride;
      rest /= extent[d];
      stride *= whole[d];
    }
    body(static_cast<std::size_t>(index), static_cast<std::size_t>(i));
  }
}

}  // namespace alpa
