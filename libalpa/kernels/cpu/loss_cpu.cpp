#include <cmath>
#include <limits>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"
#include "libalpa/kernels/double_sum.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

template <class T>
float maximum_of(const T* x, std::int64_t n) {
  float maximum = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = 0; i < n; ++i) maximum = to_float(x[i]) > maximum ? to_float(x[i]) : maximum;
  return maximum;
}

template <class T>
float sum_of_exp(const T* x, float m, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += fast_exp(to_float(x[i]) - m);
  return sum;
}

/// (softmax - one hot of `target`) * dloss for the `words` first of a row's columns, 0 for the others;
/// `target` is a column of this row, or outside it.
template <class T>
void cross_entropy_grad_row(const T* x, std::int64_t target, float m, float z, float dloss,
                            std::int64_t words, std::int64_t n, T* dx) {
  const float factor = dloss / z;
#pragma omp simd
  for (std::int64_t i = 0; i < words; ++i) dx[i] = from_float<T>(fast_exp(to_float(x[i]) - m) * factor);
  std::fill(dx + words, dx + n, T{});
  if (target >= 0 && target < words)
    dx[target] = from_float<T>(fast_exp(to_float(x[target]) - m) * factor - dloss);
}

/// value(call, row, logit of the row's target) for each row; 0 where the tile does not have the target.
template <class Value>
std::unique_ptr<Kernel> value_of_targets(const KernelShape& shape, Value value) {
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t last = shape.operands[0].shape.size() - 1;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* logits = call.operand<T>(0);
      const std::int32_t* targets = call.operand<std::int32_t>(1);
      float* values = call.result<float>(0);
      const std::int64_t first = origin_of(call.operands[0], last);
      for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t column = targets[r] - first;
        const bool here = targets[r] >= 0 && column >= 0 && column < rows.width;
        values[r] = here ? value(call, r, to_float(logits[r * rows.width + column])) : 0.0f;
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> row_max_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      float* maxima = call.result<float>(0);
      const std::int64_t n = columns_of_words(call.operands[0], type, words);
      for_ranges(rows.count, row_grain(rows.width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) maxima[r] = maximum_of(x + r * rows.width, n);
      });
    });
  });
}

std::unique_ptr<Kernel> row_sum_exp_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      const float* maxima = call.operand<float>(1);
      float* sums = call.result<float>(0);
      const std::int64_t n = columns_of_words(call.operands[0], type, words);
      for_ranges(rows.count, row_grain(rows.width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) sums[r] = sum_of_exp(x + r * rows.width, maxima[r], n);
      });
    });
  });
}

std::unique_ptr<Kernel> cross_entropy_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tiff->f")) return nullptr;
  return value_of_targets(shape, [](const KernelCall& call, std::int64_t row, float logit) {
    return std::log(call.operand<float>(3)[row]) + call.operand<float>(2)[row] - logit;
  });
}

std::unique_ptr<Kernel> is_best_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tif->f")) return nullptr;
  return value_of_targets(shape, [](const KernelCall& call, std::int64_t row, float logit) {
    return logit >= call.operand<float>(2)[row] ? 1.0f : 0.0f;
  });
}

std::unique_ptr<Kernel> cross_entropy_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tifff->t")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* logits = call.operand<T>(0);
      const std::int32_t* targets = call.operand<std::int32_t>(1);
      const float *maxima = call.operand<float>(2), *sums = call.operand<float>(3),
                  *dlosses = call.operand<float>(4);
      T* dlogits = call.result<T>(0);
      const std::int64_t first = origin_of(call.operands[0], type.shape.size() - 1), n = rows.width,
                         counted = columns_of_words(call.operands[0], type, words);
      for_ranges(rows.count, row_grain(n), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          // A position without a target has no loss, hence no gradient.
          const float dloss = targets[r] < 0 ? 0.0f : dlosses[r];
          cross_entropy_grad_row(logits + r * n, targets[r] - first, maxima[r], sums[r], dloss, counted, n,
                                 dlogits + r * n);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> reduce_sum_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  const double weight = shape.attributes.number("weight", 1.0);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const double sum = weight * double_sum<Power::one>(call.operand<T>(0), count);
      float* result = call.result<float>(0);
      *result = static_cast<float>(sum + (call.accumulate ? static_cast<double>(*result) : 0.0));
    });
  });
}

std::unique_ptr<Kernel> expand_like_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const std::int64_t count = element_count(shape.results[0].shape);
  return for_type(shape.results[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T value = from_float<T>(*call.operand<float>(1));
      T* y = call.result<T>(0);
      for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) y[i] = value;
      });
    });
  });
}

}  // namespace alpa::ops
