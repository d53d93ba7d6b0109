#include "libalpa/kernels/contraction.h"

#include <utility>

namespace alpa {
namespace {

using Strides = std::vector<std::int64_t>;  // of a dimension, or of a factor, 0 where it is absent

Strides factor_strides(const ShardingRule& rule, const std::vector<DimensionFactors>& dimensions) {
  Strides strides(rule.factors.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = dimensions.size(); d-- > 0;)
    for (std::size_t f = dimensions[d].size(); f-- > 0;) {
      const auto factor = static_cast<std::size_t>(dimensions[d][f]);
      strides[factor] += stride;
      stride *= rule.factors[factor].size;
    }
  return strides;
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

std::vector<int> factors_in_order(const std::vector<DimensionFactors>& dimensions) {
  std::vector<int> order;
  for (const DimensionFactors& dimension : dimensions)
    order.insert(order.end(), dimension.begin(), dimension.end());
  return order;
}

/// Appends an inner loop, or merges it into the loop around it where every tensor lets them run as one.
void append(std::vector<ContractionLoop>& loops, const ContractionLoop& inner) {
  if (inner.size == 1) return;
  if (!loops.empty()) {
    ContractionLoop& outer = loops.back();
    if (outer.left == inner.size * inner.left && outer.right == inner.size * inner.right &&
        outer.result == inner.size * inner.result) {
      outer = {outer.size * inner.size, inner.left, inner.right, inner.result};
      return;
    }
  }
  loops.push_back(inner);
}

std::optional<MatrixLayout> layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                      std::int64_t column_stride) {
  if ((columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns))
    return MatrixLayout{false, rows == 1 ? columns : row_stride};
  if ((rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows))
    return MatrixLayout{true, columns == 1 ? rows : column_stride};
  return std::nullopt;
}

ContractionLoop only(const std::vector<ContractionLoop>& loops) {
  return loops.empty() ? ContractionLoop{} : loops[0];
}

}  // namespace

Contraction contraction_of(const ShardingRule& rule) {
  const Strides left = factor_strides(rule, rule.operands[0]), right = factor_strides(rule, rule.operands[1]);
  const Strides result = factor_strides(rule, rule.results[0]);
  Contraction contraction;
  std::vector<bool> placed(rule.factors.size(), false);
  const auto place = [&](int index) {
    const auto f = static_cast<std::size_t>(index);
    if (placed[f]) return;
    placed[f] = true;
    const ContractionLoop loop{rule.factors[f].size, left[f], right[f], result[f]};
    auto& loops = !loop.result              ? contraction.sums
                  : loop.left && loop.right ? contraction.batch
                  : loop.right              ? contraction.columns
                                            : contraction.rows;
    append(loops, loop);
  };
  // Result first, then the operands: loops of one part come in the order of a tensor that has all of them.
  for (const int f : factors_in_order(rule.results[0])) place(f);
  for (const int f : factors_in_order(rule.operands[0])) place(f);
  for (const int f : factors_in_order(rule.operands[1])) place(f);
  return contraction;
}

std::optional<MatrixProduct> matrix_product_of(const Contraction& contraction) {
  if (contraction.rows.size() > 1 || contraction.columns.size() > 1 || contraction.sums.size() > 1)
    return std::nullopt;
  ContractionLoop rows = only(contraction.rows), columns = only(contraction.columns),
                  sum = only(contraction.sums);
  std::vector<ContractionLoop> batch = contraction.batch;
  auto result = layout_of(rows.size, columns.size, rows.result, columns.result);
  if (!result) return std::nullopt;
  const bool swapped = result->transposed;
  if (swapped) {
    // result^T = right^T left^T
    std::swap(rows, columns);
    for (ContractionLoop* loop : {&rows, &columns, &sum}) std::swap(loop->left, loop->right);
    for (ContractionLoop& loop : batch) std::swap(loop.left, loop.right);
  }
  const auto left = layout_of(rows.size, sum.size, rows.left, sum.left);
  const auto right = layout_of(sum.size, columns.size, sum.right, columns.right);
  if (!left || !right) return std::nullopt;
  return MatrixProduct{rows.size, columns.size,    sum.size, *left,
                       *right,    result->leading, swapped,  std::move(batch)};
}

std::vector<ContractionLoop> copy_loops_of(const ShardingRule& rule) {
  const Strides from = factor_strides(rule, rule.operands[0]), to = factor_strides(rule, rule.results[0]);
  std::vector<ContractionLoop> loops;
  for (const int index : factors_in_order(rule.results[0])) {
    const auto f = static_cast<std::size_t>(index);
    append(loops, {rule.factors[f].size, from[f], 0, to[f]});
  }
  return loops;
}

std::vector<ContractionLoop> copy_loops_of(const Box& from, const Box& to, const Shape& extent) {
  const Strides from_strides = row_major_strides(from.tensor), to_strides = row_major_strides(to.tensor);
  std::vector<ContractionLoop> loops;
  for (std::size_t d = 0; d < extent.size(); ++d)
    append(loops, {extent[d], from_strides[d], 0, to_strides[d]});
  return loops;
}

std::int64_t first_element(const Box& box) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < box.tensor.size(); ++d) index = index * box.tensor[d] + box.origin[d];
  return index;
}

std::int64_t trip_count(const std::vector<ContractionLoop>& loops) {
  std::int64_t count = 1;
  for (const ContractionLoop& loop : loops) count *= loop.size;
  return count;
}

}  // namespace alpa
