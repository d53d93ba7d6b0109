#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// Calls row(at) for each row (along the last dimension) of a box of that shape, in row-major order: `at` is
/// where it begins, in the box. A scalar has one row.
template <class Row>
void for_each_row(const Shape& box, const Row& row) {
  if (element_count(box) == 0) return;
  Shape at(box.size(), 0);
  for (;;) {
    row(static_cast<const Shape&>(at));
    std::size_t d = at.empty() ? 0 : at.size() - 1;
    while (d > 0 && ++at[d - 1] == box[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

inline std::int64_t row_length(const Shape& box) { return box.empty() ? 1 : box.back(); }

/// Where an element of a tensor is, in row-major order.
inline std::int64_t element_at(const Shape& tensor, const Shape& at) {
  std::int64_t element = 0;
  for (std::size_t d = 0; d < tensor.size(); ++d) element = element * tensor[d] + at[d];
  return element;
}

}  // namespace alpa
