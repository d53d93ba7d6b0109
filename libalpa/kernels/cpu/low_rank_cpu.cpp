#include <cmath>
#include <vector>

#include "libalpa/graph/low_rank.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// Gram-Schmidt, each column twice ("twice is enough": Giraud, Langou and Rozloznik, 2005), in f64.
class OrthonormalColumns {
 public:
  OrthonormalColumns(std::int64_t rows, std::int64_t rank)
      : rows_(rows), rank_(rank), along_(static_cast<std::size_t>(rank)) {}

  void operator()(const KernelCall& call) {
    float* const factor = call.result<float>(0);
    std::copy_n(call.operand<float>(0), rows_ * rank_, factor);
    for (std::int64_t column = 0; column < rank_; ++column) {
      const double before = length(factor, column);
      for (int pass = 0; pass < 2; ++pass) subtract_others(factor, column);
      const double left = length(factor, column);
      const double scale = left > kLeastOfColumn * before ? 1 / left : 0;
      for (std::int64_t row = 0; row < rows_; ++row) {
        float& element = factor[row * rank_ + column];
        element = static_cast<float>(static_cast<double>(element) * scale);
      }
    }
  }

 private:
  double length(const float* factor, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto element = static_cast<double>(factor[row * rank_ + column]);
      sum += element * element;
    }
    return std::sqrt(sum);
  }

  void subtract_others(float* factor, std::int64_t column) {
    std::fill_n(along_.begin(), column, 0.0);
    for (std::int64_t row = 0; row < rows_; ++row) {
      const float* const of = factor + row * rank_;
      for (std::int64_t other = 0; other < column; ++other)
        along_[other] += static_cast<double>(of[other]) * static_cast<double>(of[column]);
    }
    for (std::int64_t row = 0; row < rows_; ++row) {
      float* const of = factor + row * rank_;
      double sum = 0;
      for (std::int64_t other = 0; other < column; ++other)
        sum += along_[other] * static_cast<double>(of[other]);
      of[column] = static_cast<float>(static_cast<double>(of[column]) - sum);
    }
  }

  std::int64_t rows_, rank_;
  std::vector<double> along_;  ///< the columns before
};

LowRankExtents extents_of(const KernelShape& shape) {
  return {shape.operands[0].shape, shape.attributes.integer("rows")};
}

}  // namespace

std::unique_ptr<Kernel> low_rank_product_cpu(const KernelShape& shape) {
  if (!types_match(shape, "fff->f")) return nullptr;
  const bool transposed = shape.attributes.integer("transposed", 0) != 0;
  const auto [rows, columns] = extents_of(shape);
  const std::int64_t rank = shape.operands[2].shape.back();
  const ProductExtents extents{transposed ? columns : rows, rank, transposed ? rows : columns};
  return host_kernel([=, columns = columns](const KernelCall& call) {
    for (const std::size_t term : {0, 1})
      multiply_on_all_threads(extents, {{transposed, columns}, call.operand<float>(term)},
                              {{false, rank}, call.operand<float>(2)}, term == 0 ? 0.0f : 1.0f,
                              {call.result<float>(0), rank});
  });
}

std::unique_ptr<Kernel> orthonormal_columns_cpu(const KernelShape& shape) {
  if (!types_match(shape, "f->f")) return nullptr;
  const std::int64_t rank = shape.operands[0].shape.back();
  return host_kernel(OrthonormalColumns(element_count(shape.operands[0].shape) / rank, rank));
}

std::unique_ptr<Kernel> error_feedback_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ffff->f")) return nullptr;
  const auto [rows, columns] = extents_of(shape);
  const std::int64_t rank = shape.operands[2].shape.back();
  return host_kernel([rows = rows, columns = columns, rank](const KernelCall& call) {
    const float *gradient = call.operand<float>(1), *right = call.operand<float>(2);
    float *error = call.result<float>(0), *negated = static_cast<float*>(call.workspace);
    for_ranges(rows * columns, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) error[i] += gradient[i];
    });
    for_ranges(columns * rank, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) negated[i] = -right[i];
    });
    multiply_on_all_threads({rows, columns, rank}, {{false, rank}, call.operand<float>(3)},
                            {{true, rank}, negated}, 1.0f, {error, columns});
  });
}

std::unique_ptr<Kernel> renewed_columns_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ff->f")) return nullptr;
  const std::int64_t all = element_count(shape.operands[0].shape), rank = shape.operands[0].shape.back();
  return host_kernel([all, rank](const KernelCall& call) {
    const float* const made = call.operand<float>(1);
    float* const factor = call.result<float>(0);
    for (std::int64_t column = 0; column < rank; ++column) {
      bool is_zero = true;
      for (std::int64_t i = column; i < all; i += rank) is_zero = is_zero && made[i] == 0;
      for (std::int64_t i = column; !is_zero && i < all; i += rank) factor[i] = made[i];
    }
  });
}

}  // namespace alpa::ops
