#include <cmath>

#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cuda/column_sums.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// n samples, each of `places` rows of groups of channels.
struct Groups {
  std::int64_t n, places, groups, width;

  Groups(const TensorType& x, const TensorType& statistics)
      : n(x.shape[0]),
        places(rows_of(x).count / n),
        groups(statistics.shape[1]),
        width(x.shape.back() / groups) {}

  std::int64_t channels() const { return groups * width; }
  float count() const { return static_cast<float>(places * width); }
};

template <class T>
void add_row(float* sums, const T* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) sums[c] += to_float(x[c]);
}

template <class T>
void add_squares(float* sums, const T* x, float mean, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const float difference = to_float(x[c]) - mean;
    sums[c] += difference * difference;
  }
}

template <class T>
void normalize(const T* x, float mean, float scale, const T* gain, const T* bias, std::int64_t n, T* y) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c)
    y[c] = from_float<T>((to_float(x[c]) - mean) * scale * to_float(gain[c]) + to_float(bias[c]));
}

/// Adds dy and dy * h, where h is x normalised.
template <class T>
void add_gradients(float* dy_sums, float* dyh_sums, const T* dy, const T* x, float mean, float scale,
                   std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const float d = to_float(dy[c]);
    dy_sums[c] += d;
    dyh_sums[c] += d * (to_float(x[c]) - mean) * scale;
  }
}

/// With g = dy * gain: dx = scale * (g - mean(g) - h * mean(g h)).
template <class T>
void normalize_gradient(const T* dy, const T* x, const T* gain, float mean, float scale, float mean_g,
                        float mean_gh, std::int64_t n, T* dx) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const float h = (to_float(x[c]) - mean) * scale;
    dx[c] = from_float<T>(scale * (to_float(dy[c]) * to_float(gain[c]) - mean_g - h * mean_gh));
  }
}

/// body(row, group index among those of all samples, its first channel) for all rows of all samples.
template <class Body>
void for_rows(const Groups& s, const Body& body) {
  for_ranges(s.n * s.places, row_grain(s.channels()), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t g = 0; g < s.groups; ++g) body(row, row / s.places * s.groups + g, g * s.width);
  });
}

/// For each group the sum of what its channels have, each times its weight where there are weights.
template <class T>
float group_sum(const float* sums, const T* weights, std::int64_t n) {
  float sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += weights ? sums[c] * to_float(weights[c]) : sums[c];
  return sum;
}

template <class T>
void group_norm_forward(const Groups& s, float epsilon, ColumnSums& sums, const KernelCall& call) {
  const T *x = call.operand<T>(0), *gain = call.operand<T>(1), *bias = call.operand<T>(2);
  T* y = call.result<T>(0);
  float *means = call.result<float>(1), *scales = call.result<float>(2);
  const T* unweighted = nullptr;
  sums.gather(
      [=](float* to, std::int64_t, std::int64_t row) { add_row(to, x + row * s.channels(), s.channels()); });
  for (std::int64_t i = 0; i < s.n * s.groups; ++i)
    means[i] = group_sum(sums.of(i / s.groups) + i % s.groups * s.width, unweighted, s.width) / s.count();
  sums.gather([=](float* to, std::int64_t sample, std::int64_t row) {
    for (std::int64_t g = 0; g < s.groups; ++g)
      add_squares(to + g * s.width, x + row * s.channels() + g * s.width, means[sample * s.groups + g],
                  s.width);
  });
  for (std::int64_t i = 0; i < s.n * s.groups; ++i) {
    const float square = group_sum(sums.of(i / s.groups) + i % s.groups * s.width, unweighted, s.width);
    scales[i] = 1.0f / std::sqrt(square / s.count() + epsilon);
  }
  for_rows(s, [=](std::int64_t row, std::int64_t group, std::int64_t c) {
    const std::int64_t at = row * s.channels() + c;
    normalize(x + at, means[group], scales[group], gain + c, bias + c, s.width, y + at);
  });
}

/// `sums` has two columns per channel; `means`, per group, the means of g and g h.
template <class T>
void group_norm_backward(const Groups& s, ColumnSums& sums, std::vector<float>& group_means,
                         const KernelCall& call) {
  const T *dy = call.operand<T>(0), *x = call.operand<T>(1), *gain = call.operand<T>(2);
  const float *means = call.operand<float>(3), *scales = call.operand<float>(4);
  T *dx = call.result<T>(0), *dgain = call.result<T>(1), *dbias = call.result<T>(2);
  const std::int64_t channels = s.channels();
  sums.gather([=](float* to, std::int64_t sample, std::int64_t row) {
    for (std::int64_t g = 0; g < s.groups; ++g) {
      const std::int64_t c = g * s.width, at = row * channels + c, group = sample * s.groups + g;
      add_gradients(to + c, to + channels + c, dy + at, x + at, means[group], scales[group], s.width);
    }
  });
  for (std::int64_t i = 0; i < s.n * s.groups; ++i) {
    const std::int64_t c = i % s.groups * s.width;
    for (const std::int64_t which : {0, 1})
      group_means[2 * i + which] =
          group_sum(sums.of(i / s.groups) + which * channels + c, gain + c, s.width) / s.count();
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    float gain_sum = 0, bias_sum = 0;
    for (std::int64_t i = 0; i < s.n; ++i) {
      bias_sum += sums.of(i)[c];
      gain_sum += sums.of(i)[channels + c];
    }
    dgain[c] = from_float<T>(gain_sum);
    dbias[c] = from_float<T>(bias_sum);
  }
  for_rows(s, [=, of_group = group_means.data()](std::int64_t row, std::int64_t group, std::int64_t c) {
    const std::int64_t at = row * channels + c;
    normalize_gradient(dy + at, x + at, gain + c, means[group], scales[group], of_group[2 * group],
                       of_group[2 * group + 1], s.width, dx + at);
  });
}

}  // namespace

std::unique_ptr<Kernel> group_norm_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttt->tff")) return nullptr;
  const Groups s(shape.operands[0], shape.results[1]);
  const auto epsilon = static_cast<float>(shape.attributes.number("epsilon", 1e-5));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    return host_kernel([=, sums = ColumnSums(s.n, s.places, s.channels())](const KernelCall& call) mutable {
      group_norm_forward<decltype(zero)>(s, epsilon, sums, call);
    });
  });
}

std::unique_ptr<Kernel> group_norm_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tttff->ttt")) return nullptr;
  const Groups s(shape.operands[0], shape.operands[3]);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    return host_kernel(
        [=, sums = ColumnSums(s.n, s.places, 2 * s.channels()),
         means = std::vector<float>(static_cast<std::size_t>(2 * s.n * s.groups))](
            const KernelCall& call) mutable { group_norm_backward<decltype(zero)>(s, sums, means, call); });
  });
}

}  // namespace alpa::ops
