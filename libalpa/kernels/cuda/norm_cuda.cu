#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/column_sums.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

// Each block of the row kernels has one row.

template <class T>
__global__ void layer_norm_row(std::int64_t n, float epsilon, const T* x, const T* gain, const T* bias, T* y,
                               float* means, float* scales) {
  const std::int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  const float mean =
      block_sum<float>(n, [=](std::int64_t i) { return widened(x[i]); }) / static_cast<float>(n);
  const float variance = block_sum<float>(n,
                                          [=](std::int64_t i) {
                                            const float difference = widened(x[i]) - mean;
                                            return difference * difference;
                                          }) /
                         static_cast<float>(n);
  const float scale = 1.0f / sqrtf(variance + epsilon);
  if (threadIdx.x == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
  for_block(n, [=](std::int64_t i) {
    y[i] = narrowed<T>((widened(x[i]) - mean) * scale * widened(gain[i]) + widened(bias[i]));
  });
}

template <class T>
__global__ void rms_norm_row(std::int64_t n, float epsilon, const T* x, const T* gain, T* y, float* scales) {
  const std::int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  const float square = block_sum<float>(n, [=](std::int64_t i) { return widened(x[i]) * widened(x[i]); });
  const float scale = 1.0f / sqrtf(square / static_cast<float>(n) + epsilon);
  if (threadIdx.x == 0) scales[row] = scale;
  for_block(n, [=](std::int64_t i) { y[i] = narrowed<T>(widened(x[i]) * scale * widened(gain[i])); });
}

/// With h = (x - mean) * scale and g = dy * gain: dx = scale * (g - mean(g) - h * mean(g h)). `means` null:
/// RMS norm, which has neither a mean of x nor one of g.
template <class T>
__global__ void norm_grad_row(std::int64_t n, const T* dy, const T* x, const T* gain, const float* means,
                              const float* scales, T* dx) {
  const std::int64_t row = blockIdx.x;
  dy += row * n;
  x += row * n;
  dx += row * n;
  const float mean = means ? means[row] : 0.0f, scale = scales[row];
  const auto g = [=](std::int64_t i) { return widened(dy[i]) * widened(gain[i]); };
  const auto h = [=](std::int64_t i) { return (widened(x[i]) - mean) * scale; };
  const auto width = static_cast<float>(n);
  const float mean_g = means ? block_sum<float>(n, g) / width : 0.0f;
  const float mean_gh = block_sum<float>(n, [=](std::int64_t i) { return g(i) * h(i); }) / width;
  for_block(n, [=](std::int64_t i) { dx[i] = narrowed<T>(scale * (g(i) - mean_g - h(i) * mean_gh)); });
}

/// One element's part of the gradient of the gain.
template <class T>
struct GainTerm {
  std::int64_t width;
  const T *dy, *x;
  const float *means, *scales;
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * width + column;
    return widened(dy[i]) * (widened(x[i]) - (means ? means[row] : 0.0f)) * scales[row];
  }
};

template <class T>
struct BiasTerm {
  std::int64_t width;
  const T* dy;
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    return widened(dy[row * width + column]);
  }
};

}  // namespace

std::unique_ptr<Kernel> layer_norm_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ttt->tff")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), kThreads, layer_norm_row<T>, rows.width, epsilon,
             call.operand<T>(0), call.operand<T>(1), call.operand<T>(2), call.result<T>(0),
             call.result<float>(1), call.result<float>(2));
    });
  });
}

std::unique_ptr<Kernel> layer_norm_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tttff->ttt")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [rows, sums = DeviceColumnSums(rows.count, rows.width)](const KernelCall& call, cudaStream_t stream) {
          const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
          const float *means = call.operand<float>(3), *scales = call.operand<float>(4);
          launch(stream, blocks_of(rows.count), kThreads, norm_grad_row<T>, rows.width, dy, x,
                 call.operand<T>(2), means, scales, call.result<T>(0));
          sums.run(stream, GainTerm<T>{rows.width, dy, x, means, scales}, call.result<T>(1), false,
                   call.workspace);
          sums.run(stream, BiasTerm<T>{rows.width, dy}, call.result<T>(2), false, call.workspace);
        });
  });
}

std::unique_ptr<Kernel> rms_norm_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tt->tf")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), kThreads, rms_norm_row<T>, rows.width, epsilon,
             call.operand<T>(0), call.operand<T>(1), call.result<T>(0), call.result<float>(1));
    });
  });
}

std::unique_ptr<Kernel> rms_norm_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tttf->tt")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [rows, sums = DeviceColumnSums(rows.count, rows.width)](const KernelCall& call, cudaStream_t stream) {
          const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
          const float *means = nullptr, *scales = call.operand<float>(3);
          launch(stream, blocks_of(rows.count), kThreads, norm_grad_row<T>, rows.width, dy, x,
                 call.operand<T>(2), means, scales, call.result<T>(0));
          sums.run(stream, GainTerm<T>{rows.width, dy, x, means, scales}, call.result<T>(1), false,
                   call.workspace);
        });
  });
}

}  // namespace alpa::ops
