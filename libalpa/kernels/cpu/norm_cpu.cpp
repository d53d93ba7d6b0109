#include <cmath>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/piece_sums.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

template <class T>
float sum_of(const T* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += to_float(x[i]);
  return sum;
}

template <class T>
float square_sum_around(const T* x, float mean, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    const float difference = to_float(x[i]) - mean;
    sum += difference * difference;
  }
  return sum;
}

template <class T>
void layer_norm_row(const T* x, const T* gain, const T* bias, float mean, float scale, std::int64_t n, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = from_float<T>((to_float(x[i]) - mean) * scale * to_float(gain[i]) + to_float(bias[i]));
}

/// With h = (x - mean) * scale and g = dy * gain: dx = scale * (g - mean(g) - h * mean(g h)); the sums over
/// rows of dy * h and dy go to `dgain` and `dbias`. dx[i] = to(i, gradient).
template <class T, class To>
void layer_norm_grad_row(const T* dy, const T* x, const T* gain, float mean, float scale, std::int64_t n,
                         T* dx, float* dgain, float* dbias, const To& to) {
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (to_float(x[i]) - mean) * scale, d = to_float(dy[i]);
    const float g = d * to_float(gain[i]);
    sum += g;
    product += g * h;
    dgain[i] += d * h;
    dbias[i] += d;
  }
  const float mean_g = sum / static_cast<float>(n), mean_gh = product / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (to_float(x[i]) - mean) * scale;
    dx[i] = from_float<T>(to(i, scale * (to_float(dy[i]) * to_float(gain[i]) - mean_g - h * mean_gh)));
  }
}

/// As layer_norm_grad_row without mean and bias.
template <class T, class To>
void rms_norm_grad_row(const T* dy, const T* x, const T* gain, float scale, std::int64_t n, T* dx,
                       float* dgain, const To& to) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = to_float(x[i]) * scale, d = to_float(dy[i]);
    product += d * to_float(gain[i]) * h;
    dgain[i] += d * h;
  }
  const float mean_gh = product / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = to_float(x[i]) * scale;
    dx[i] = from_float<T>(to(i, scale * (to_float(dy[i]) * to_float(gain[i]) - h * mean_gh)));
  }
}

}  // namespace

std::unique_ptr<Kernel> layer_norm_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttt->tff")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *x = call.operand<T>(0), *gain = call.operand<T>(1), *bias = call.operand<T>(2);
      T* y = call.result<T>(0);
      float *means = call.result<float>(1), *scales = call.result<float>(2);
      for_ranges(rows.count, row_grain(rows.width), [=](std::int64_t begin, std::int64_t end) {
        const std::int64_t n = rows.width;
        for (std::int64_t r = begin; r < end; ++r) {
          const float mean = sum_of(x + r * n, n) / static_cast<float>(n);
          const float variance = square_sum_around(x + r * n, mean, n) / static_cast<float>(n);
          const float scale = 1.0f / std::sqrt(variance + epsilon);
          means[r] = mean;
          scales[r] = scale;
          layer_norm_row(x + r * n, gain, bias, mean, scale, n, y + r * n);
        }
      });
    });
  });
}

namespace {

/// What is written of a row's gradient: itself, or the sum with that of a residual.
struct Alone {
  float operator()(std::int64_t, float gradient) const { return gradient; }
};
template <class T>
struct With {
  const T* other;
  float operator()(std::int64_t i, float gradient) const { return gradient + to_float(other[i]); }
};

/// Operands are dy, x, gain, the means of a layer norm, the scales and, where it adds, what is added.
std::unique_ptr<Kernel> norm_gradient(const KernelShape& shape, bool has_means, bool adds) {
  const Rows rows = rows_of(shape.operands[0]);
  const std::size_t scales_at = has_means ? 4 : 3;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel(
        [=, sums = PieceSums(rows.count, (has_means ? 2 : 1) * rows.width)](const KernelCall& call) mutable {
          const T *dy = call.operand<T>(0), *x = call.operand<T>(1), *gain = call.operand<T>(2);
          const float* means = has_means ? call.operand<float>(3) : nullptr;
          const float* scales = call.operand<float>(scales_at);
          const T* other = adds ? call.operand<T>(scales_at + 1) : nullptr;
          T* dx = call.result<T>(0);
          const std::int64_t n = rows.width;
          for_pieces(rows.count, sums.count(),
                     [=, &sums](std::int64_t piece, std::int64_t begin, std::int64_t end) {
                       float* dgain = sums.cleared(piece);
                       for (std::int64_t r = begin; r < end; ++r) {
                         const std::int64_t at = r * n;
                         const auto row = [&](const auto& to) {
                           if (means)
                             layer_norm_grad_row(dy + at, x + at, gain, means[r], scales[r], n, dx + at,
                                                 dgain, dgain + n, to);
                           else
                             rms_norm_grad_row(dy + at, x + at, gain, scales[r], n, dx + at, dgain, to);
                         };
                         other ? row(With<T>{other + at}) : row(Alone{});
                       }
                     });
          sums.finish(0, n, call.result<T>(1), false);
          if (has_means) sums.finish(n, n, call.result<T>(2), false);
        });
  });
}

}  // namespace

std::unique_ptr<Kernel> layer_norm_grad_cpu(const KernelShape& shape) {
  return types_match(shape, "tttff->ttt") ? norm_gradient(shape, true, false) : nullptr;
}

std::unique_ptr<Kernel> layer_norm_grad_add_cpu(const KernelShape& shape) {
  return types_match(shape, "tttfft->ttt") ? norm_gradient(shape, true, true) : nullptr;
}

std::unique_ptr<Kernel> rms_norm_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->tf")) return nullptr;
  const Rows rows = rows_of(shape.operands[0]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *x = call.operand<T>(0), *gain = call.operand<T>(1);
      T* y = call.result<T>(0);
      float* scales = call.result<float>(1);
      for_ranges(rows.count, row_grain(rows.width), [=](std::int64_t begin, std::int64_t end) {
        const std::int64_t n = rows.width;
        for (std::int64_t r = begin; r < end; ++r) {
          const T* row = x + r * n;
          T* to = y + r * n;
          const float scale =
              1.0f / std::sqrt(square_sum_around(row, 0.0f, n) / static_cast<float>(n) + epsilon);
          scales[r] = scale;
#pragma omp simd
          for (std::int64_t i = 0; i < n; ++i)
            to[i] = from_float<T>(to_float(row[i]) * scale * to_float(gain[i]));
        }
      });
    });
  });
}

std::unique_ptr<Kernel> rms_norm_grad_cpu(const KernelShape& shape) {
  return types_match(shape, "tttf->tt") ? norm_gradient(shape, false, false) : nullptr;
}

std::unique_ptr<Kernel> rms_norm_grad_add_cpu(const KernelShape& shape) {
  return types_match(shape, "tttft->tt") ? norm_gradient(shape, false, true) : nullptr;
}

}  // namespace alpa::ops
