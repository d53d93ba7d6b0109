#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// An operand as a matrix.
struct Matrix {
  const Values& of;
  std::size_t columns;
  double operator()(std::size_t row, std::size_t column) const { return of[row * columns + column]; }
  std::size_t rows() const { return of.size() / columns; }
};

std::size_t columns_of_gradient(const ReferenceCall& c) {
  std::size_t columns = 1;
  for (auto d = static_cast<std::size_t>(c.attributes.integer("rows")); d < c.types[0].shape.size(); ++d)
    columns *= c.extent(0, d);
  return columns;
}

}  // namespace

ReferenceResults low_rank_product_reference(const ReferenceCall& c) {
  const std::size_t rank = c.width(2), columns = columns_of_gradient(c);
  const Matrix gradient{c.in[0], columns}, error{c.in[1], columns}, factor{c.in[2], rank};
  const bool transposed = c.attributes.integer("transposed", 0) != 0;
  Values product((transposed ? columns : gradient.rows()) * rank, 0.0);
  for (std::size_t m = 0; m < gradient.rows(); ++m)
    for (std::size_t n = 0; n < columns; ++n)
      for (std::size_t k = 0; k < rank; ++k)
        product[(transposed ? n : m) * rank + k] +=
            (gradient(m, n) + error(m, n)) * factor(transposed ? m : n, k);
  return {product};
}

/// As an elimination: what is left of each column, once it is done, is taken out of all after it.
ReferenceResults orthonormal_columns_reference(const ReferenceCall& c) {
  const std::size_t rank = c.width(0), rows = c.in[0].size() / rank;
  Values q = c.in[0];
  for (std::size_t k = 0; k < rank; ++k) {
    double square = 0;
    for (std::size_t m = 0; m < rows; ++m) square += q[m * rank + k] * q[m * rank + k];
    for (std::size_t m = 0; m < rows; ++m) q[m * rank + k] /= std::sqrt(square);
    for (std::size_t later = k + 1; later < rank; ++later) {
      double along = 0;
      for (std::size_t m = 0; m < rows; ++m) along += q[m * rank + k] * q[m * rank + later];
      for (std::size_t m = 0; m < rows; ++m) q[m * rank + later] -= along * q[m * rank + k];
    }
  }
  return {q};
}

ReferenceResults error_feedback_reference(const ReferenceCall& c) {
  const std::size_t rank = c.width(2), columns = columns_of_gradient(c);
  const Matrix right{c.in[2], rank}, left{c.in[3], rank};
  Values error = c.in[0];
  for (std::size_t i = 0; i < error.size(); ++i) {
    error[i] += c.in[1][i];
    for (std::size_t k = 0; k < rank; ++k) error[i] -= left(i / columns, k) * right(i % columns, k);
  }
  return {error};
}

ReferenceResults renewed_columns_reference(const ReferenceCall& c) {
  const std::size_t rank = c.width(0);
  std::vector<bool> is_zero(rank, true);
  for (std::size_t i = 0; i < c.in[1].size(); ++i)
    if (c.in[1][i] != 0) is_zero[i % rank] = false;
  Values factor = c.in[1];
  for (std::size_t i = 0; i < factor.size(); ++i)
    if (is_zero[i % rank]) factor[i] = c.in[0][i];
  return {factor};
}

}  // namespace alpa
