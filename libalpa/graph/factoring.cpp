#include "libalpa/graph/factoring.h"

#include <algorithm>

namespace alpa {

Factoring Factoring::of(const Shape& parameter) {
  const auto rank = static_cast<std::int64_t>(parameter.size());
  if (rank < 2) return {};
  const auto longer = [&](std::int64_t a, std::int64_t b) {  // of equally long ones the later
    return b < 0 || parameter[a] >= parameter[b] ? a : b;
  };
  std::int64_t first = -1, second = -1;
  for (std::int64_t d = 0; d < rank; ++d) first = longer(d, first);
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != first) second = longer(d, second);
  return {std::min(first, second), std::max(first, second)};
}

Factoring Factoring::of(const Attributes& attributes) {
  return {attributes.integer("rows", -1), attributes.integer("columns", -1)};
}

Attributes Factoring::attributes() const {
  return exists() ? Attributes{{"rows", rows}, {"columns", columns}} : Attributes{};
}

namespace {

Shape with_columns(Shape for_rows, const Shape& for_columns, Factoring factoring) {
  for_rows.insert(for_rows.begin() + factoring.columns, for_columns[factoring.columns - 1]);
  return for_rows;
}

}  // namespace

FactoredExtents::FactoredExtents(const Shape& for_rows, const Shape& for_columns, Factoring factoring)
    : FactoredExtents(with_columns(for_rows, for_columns, factoring), factoring) {}

FactoredExtents::FactoredExtents(const Shape& tensor, Factoring factoring) {
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(tensor.size()); ++d) {
    std::int64_t& extent = !factoring.exists() || d == factoring.rows ? rows
                           : d < factoring.rows                       ? outer
                           : d < factoring.columns                    ? middle
                           : d == factoring.columns                   ? columns
                                                                      : inner;
    extent *= tensor[d];
  }
}

}  // namespace alpa
