#include "libalpa/kernels/cuda/column_sums.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/row_of_vectors.cuh"

namespace alpa::ops {
namespace {

// Each block of the row kernels has one row, which it goes over several times: all but the first time it lies
// in the cache of the multiprocessor.

template <class T>
__global__ void layer_norm_row(std::int64_t n, float epsilon, const T* x, const T* gain, const T* bias, T* y,
                               float* means, float* scales) {
  const std::int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  const RowOfVectors<kVector<T>> elements(n, x, gain, bias, y);
  const auto width = static_cast<float>(n);
  const float mean = elements.sum([](float value) { return value; }, x) / width;
  const float variance = elements.sum(
                             [=](float value) {
                               const float difference = value - mean;
                               return difference * difference;
                             },
                             x) /
                         width;
  const float scale = 1.0f / sqrtf(variance + epsilon);
  if (threadIdx.x == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
  elements.map([=](float value, float g, float b) { return (value - mean) * scale * g + b; }, y, x, gain,
               bias);
}

template <class T>
__global__ void rms_norm_row(std::int64_t n, float epsilon, const T* x, const T* gain, T* y, float* scales) {
  const std::int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  const RowOfVectors<kVector<T>> elements(n, x, gain, y);
  const float square = elements.sum([](float value) { return value * value; }, x);
  const float scale = 1.0f / sqrtf(square / static_cast<float>(n) + epsilon);
  if (threadIdx.x == 0) scales[row] = scale;
  elements.map([=](float value, float g) { return value * scale * g; }, y, x, gain);
}

/// With h = (x - mean) * scale and g = dy * gain: dx = scale * (g - mean(g) - h * mean(g h)). `means` null:
/// RMS norm, which has neither a mean of x nor one of g. `other`, unless null, is added to dx.
template <class T>
__global__ void norm_grad_row(std::int64_t n, const T* dy, const T* x, const T* gain, const float* means,
                              const float* scales, const T* other, T* dx) {
  const std::int64_t row = blockIdx.x;
  dy += row * n;
  x += row * n;
  dx += row * n;
  if (other) other += row * n;
  const RowOfVectors<kVector<T>> elements(n, dy, x, gain, other ? other : x, dx);
  const float mean = means ? means[row] : 0.0f, scale = scales[row];
  const auto h = [=](float value) { return (value - mean) * scale; };
  const auto width = static_cast<float>(n);
  const float mean_g = means ? elements.sum([](float d, float g) { return d * g; }, dy, gain) / width : 0.0f;
  const float mean_gh =
      elements.sum([=](float d, float g, float value) { return d * g * h(value); }, dy, gain, x) / width;
  const auto gradient = [=](float d, float g, float value) {
    return scale * (d * g - mean_g - h(value) * mean_gh);
  };
  if (other)
    elements.map([=](float d, float g, float value, float z) { return gradient(d, g, value) + z; }, dx, dy,
                 gain, x, other);
  else
    elements.map(gradient, dx, dy, gain, x);
}

/// The gradient of the gain and, with kSums = 2, that of the bias.
template <class T, int kSumsOfColumn>
struct GainAndBias {
  static constexpr int kSums = kSumsOfColumn, kColumns = kVector<T>;
  std::int64_t width;
  const T *dy, *x;
  const float *means, *scales;

  __device__ bool rows_are_vectors() const { return alpa::rows_are_vectors<kColumns>(width, dy, x); }
  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N>* sums) const {
    const float mean = means ? means[row] : 0.0f, scale = scales[row];
    const Floats<N> d = load<N>(dy + row * width + column);
    sums[0] = each([=](float sum, float g, float value) { return sum + g * (value - mean) * scale; }, sums[0],
                   d, load<N>(x + row * width + column));
    if constexpr (kSums == 2) sums[1] = each(Sum{}, sums[1], d);
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
      launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width), layer_norm_row<T>,
             rows.width, epsilon, call.operand<T>(0), call.operand<T>(1), call.operand<T>(2),
             call.result<T>(0), call.result<float>(1), call.result<float>(2));
    });
  });
}

namespace {

/// Operands are dy, x, gain, the means of a layer norm, the scales and, where it adds, what is added.
std::unique_ptr<Kernel> norm_gradient(const KernelShape& shape, bool has_means, bool adds) {
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t scales_at = has_means ? 4 : 3;
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [=, sums = DeviceColumnSums(rows.count, rows.width)](const KernelCall& call, cudaStream_t stream) {
          const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
          const float *means = has_means ? call.operand<float>(3) : nullptr,
                      *scales = call.operand<float>(scales_at);
          const T* other = adds ? call.operand<T>(scales_at + 1) : nullptr;
          launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width), norm_grad_row<T>,
                 rows.width, dy, x, call.operand<T>(2), means, scales, other, call.result<T>(0));
          if (has_means)
            sums.run(stream, GainAndBias<T, 2>{rows.width, dy, x, means, scales}, false, call.workspace,
                     call.result<T>(1), call.result<T>(2));
          else
            sums.run(stream, GainAndBias<T, 1>{rows.width, dy, x, means, scales}, false, call.workspace,
                     call.result<T>(1));
        });
  });
}

}  // namespace

std::unique_ptr<Kernel> layer_norm_grad_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "tttff->ttt") ? norm_gradient(shape, true, false) : nullptr;
}

std::unique_ptr<Kernel> layer_norm_grad_add_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "tttfft->ttt") ? norm_gradient(shape, true, true) : nullptr;
}

std::unique_ptr<Kernel> rms_norm_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tt->tf")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, blocks_of(rows.count), threads_for_row<kVector<T>>(rows.width), rms_norm_row<T>,
             rows.width, epsilon, call.operand<T>(0), call.operand<T>(1), call.result<T>(0),
             call.result<float>(1));
    });
  });
}

std::unique_ptr<Kernel> rms_norm_grad_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "tttf->tt") ? norm_gradient(shape, false, false) : nullptr;
}

std::unique_ptr<Kernel> rms_norm_grad_add_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "tttft->tt") ? norm_gradient(shape, false, true) : nullptr;
}

}  // namespace alpa::ops
