#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "libalpa/graph/sharding_rule.h"
#include "libalpa/kernels/kernel.h"

namespace alpa {

/// One loop of an einsum over dense row-major tensors: its length, and the distance in elements between
/// neighbours in each tensor (0 where a tensor lacks the loop).
struct ContractionLoop {
  std::int64_t size = 1;
  std::int64_t left = 0, right = 0, result = 0;
};

/// An einsum's loops by the part they play in a matrix product, outermost first. Loops of length 1 are left
/// out, and loops that run over memory as one are merged: "b s d, d h k -> b s h k" has one row loop (b s),
/// one column loop (h k) and one summed loop d, so it is one plain product.
struct Contraction {
  std::vector<ContractionLoop> batch;    ///< in both operands and the result
  std::vector<ContractionLoop> rows;     ///< in the result, not in the right operand
  std::vector<ContractionLoop> columns;  ///< in the result, not in the left operand
  std::vector<ContractionLoop> sums;     ///< not in the result
};

/// `rule` has two operands and one result.
Contraction contraction_of(const ShardingRule& rule);

/// A matrix in memory: element (r, c) lies at r * leading + c, or at c * leading + r where transposed.
struct MatrixLayout {
  bool transposed = false;
  std::int64_t leading = 1;
};

/// A contraction that is one matrix product per batch element, as BLAS takes it: result = left * right.
struct MatrixProduct {
  std::int64_t rows = 1, columns = 1, sum = 1;
  MatrixLayout left, right;
  std::int64_t result_leading = 1;
  bool swapped = false;                ///< `left` is the einsum's right operand and `right` its left one
  std::vector<ContractionLoop> batch;  ///< left and right as here
};

/// Nothing where some part has more than one loop or a matrix has no contiguous dimension.
std::optional<MatrixProduct> matrix_product_of(const Contraction&);

/// The loops of a copy from operand 0 to result 0 (`left` is the source), outermost first in the result,
/// merged. `rule` has one operand.
std::vector<ContractionLoop> copy_loops_of(const ShardingRule& rule);

/// The same for the copy of a box of that extent; `left` is the source. The loops begin at first_element of
/// each box.
std::vector<ContractionLoop> copy_loops_of(const Box& from, const Box& to, const Shape& extent);

/// Index of a box's first element within its tensor.
std::int64_t first_element(const Box&);

/// Product of the loops' lengths.
std::int64_t trip_count(const std::vector<ContractionLoop>&);

}  // namespace alpa
