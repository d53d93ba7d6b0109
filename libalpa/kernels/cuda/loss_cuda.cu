#include <limits>

#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/row_of_vectors.cuh"

namespace alpa::ops {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Each block of the row kernels has one row of `width` elements, of which the first n count.

template <class T>
__global__ void row_max_kernel(std::int64_t width, std::int64_t n, const T* x, float* maxima) {
  x += blockIdx.x * width;
  const float maximum = RowOfVectors<kVector<T>>(n, x).reduce(
      kLowest, Maximum{}, [](float value) { return value; }, x);
  if (threadIdx.x == 0) maxima[blockIdx.x] = maximum;
}

template <class T>
__global__ void row_sum_exp_kernel(std::int64_t width, std::int64_t n, const T* x, const float* maxima,
                                   float* sums) {
  x += blockIdx.x * width;
  const float m = maxima[blockIdx.x];
  const float sum = RowOfVectors<kVector<T>>(n, x).sum([=](float value) { return expf(value - m); }, x);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// One thread per row. `first` is the global index of the tile's first column.
template <class T>
__global__ void cross_entropy_kernel(std::int64_t rows, std::int64_t n, std::int64_t first, const T* logits,
                                     const std::int32_t* targets, const float* maxima, const float* sums,
                                     float* losses) {
  for_elements(rows, [=](std::int64_t r) {
    const std::int64_t column = targets[r] - first;
    const bool here = targets[r] >= 0 && column >= 0 && column < n;
    losses[r] = here ? logf(sums[r]) + maxima[r] - widened(logits[r * n + column]) : 0.0f;
  });
}

template <class T>
__global__ void is_best_kernel(std::int64_t rows, std::int64_t n, std::int64_t first, const T* logits,
                               const std::int32_t* targets, const float* maxima, float* best) {
  for_elements(rows, [=](std::int64_t r) {
    const std::int64_t column = targets[r] - first;
    const bool here = targets[r] >= 0 && column >= 0 && column < n;
    best[r] = here && widened(logits[r * n + column]) >= maxima[r] ? 1.0f : 0.0f;
  });
}

template <class T>
__global__ void cross_entropy_grad_row(std::int64_t width, std::int64_t n, std::int64_t first,
                                       const T* logits, const std::int32_t* targets, const float* maxima,
                                       const float* sums, const float* dlosses, T* dlogits) {
  const std::int64_t row = blockIdx.x;
  logits += row * width;
  dlogits += row * width;
  // A position without a target has no loss, hence no gradient.
  const float dloss = targets[row] < 0 ? 0.0f : dlosses[row];
  const float m = maxima[row], factor = dloss / sums[row];
  const std::int64_t target = targets[row] - first;
  const auto gradient = [=](float logit) { return expf(logit - m) * factor; };
  RowOfVectors<kVector<T>>(n, logits, dlogits).map(gradient, dlogits, logits);
  for_block(width - n, [=](std::int64_t i) { dlogits[n + i] = T{}; });
  if (target < 0 || target >= n) return;
  __syncthreads();
  if (threadIdx.x == 0) dlogits[target] = narrowed<T>(gradient(widened(logits[target])) - dloss);
}

template <class T>
__global__ void fill(std::int64_t count, const float* value, T* y) {
  for_elements(count, [=](std::int64_t i) { y[i] = narrowed<T>(*value); });
}

/// Global index of the first column of the logits.
std::int64_t first_column(const KernelCall& call, std::size_t rank) {
  return origin_of(call.operands[0], rank - 1);
}

}  // namespace

std::unique_ptr<Kernel> row_max_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_float_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width), row_max_kernel<T>,
             rows.width, columns_of_words(call.operands[0], type, words), call.operand<T>(0),
             call.result<float>(0));
    });
  });
}

std::unique_ptr<Kernel> row_sum_exp_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tf->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_float_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width), row_sum_exp_kernel<T>,
             rows.width, columns_of_words(call.operands[0], type, words), call.operand<T>(0),
             call.operand<float>(1), call.result<float>(0));
    });
  });
}

std::unique_ptr<Kernel> cross_entropy_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tiff->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t rank = shape.operands[0].shape.size();
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(rows.count), kThreads, cross_entropy_kernel<T>, rows.count, rows.width,
             first_column(call, rank), call.operand<T>(0), call.operand<std::int32_t>(1),
             call.operand<float>(2), call.operand<float>(3), call.result<float>(0));
    });
  });
}

std::unique_ptr<Kernel> is_best_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tif->f")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t rank = shape.operands[0].shape.size();
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(rows.count), kThreads, is_best_kernel<T>, rows.count, rows.width,
             first_column(call, rank), call.operand<T>(0), call.operand<std::int32_t>(1),
             call.operand<float>(2), call.result<float>(0));
    });
  });
}

std::unique_ptr<Kernel> cross_entropy_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tifff->t")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t rank = shape.operands[0].shape.size();
  const std::int64_t words = shape.attributes.integer("words", 0);
  return for_float_type(shape.operands[0].dtype, [=, type = shape.operands[0]](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width),
             cross_entropy_grad_row<T>, rows.width, columns_of_words(call.operands[0], type, words),
             first_column(call, rank), call.operand<T>(0), call.operand<std::int32_t>(1),
             call.operand<float>(2), call.operand<float>(3), call.operand<float>(4), call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> expand_like_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const std::int64_t count = element_count(shape.results[0].shape);
  return for_float_type(shape.results[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(count), kThreads, fill<T>, count, call.operand<float>(1), call.result<T>(0));
    });
  });
}

}  // namespace alpa::ops
