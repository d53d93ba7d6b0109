#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/attributes.h"

namespace alpa {

/// The dimensions of a parameter that are its rows and its columns, where an optimizer keeps something for
/// each of these instead of for each element: the two longest ones, of equally long ones the later. The
/// others hold matrices apart, one for each expert or each place of a convolution's window: of a kernel [3,
/// 3, 64, 128] rows are dimension 2 and columns dimension 3, and there are 9 matrices.
struct Factoring {
  std::int64_t rows = -1, columns = -1;  ///< rows < columns; -1: of less than two dimensions, not factored

  static Factoring of(const Shape& parameter);
  static Factoring of(const Attributes&);  ///< of an operator's: "rows", "columns"
  Attributes attributes() const;           ///< those; none where it does not exist
  bool exists() const { return rows >= 0; }
};

/// A tensor seen as one of five dimensions, of which rows and columns are the second and the fourth. One that
/// is not factored has rows alone.
struct FactoredExtents {
  std::int64_t outer = 1, rows = 1, middle = 1, columns = 1, inner = 1;

  FactoredExtents(const Shape& tensor, Factoring);
  /// Of a parameter, given what there is for its rows and for its columns.
  FactoredExtents(const Shape& for_rows, const Shape& for_columns, Factoring);
  std::int64_t width() const { return middle * columns * inner; }  ///< of what lies below a row
};

}  // namespace alpa
