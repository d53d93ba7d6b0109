#include <algorithm>
#include <cmath>

#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cuda/column_sums.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// `groups` groups of samples, each of `rows` rows of channels.
struct Groups {
  std::int64_t count, rows, places, channels;

  Groups(const TensorType& x, const TensorType& statistics)
      : count(statistics.shape[0]),
        rows(rows_of(x).count / count),
        places(rows_of(x).count / x.shape[0]),
        channels(x.shape.back()) {}

  std::size_t statistics() const { return static_cast<std::size_t>(count * channels); }

  /// Rows of a whole group, of which a tile may hold some samples only.
  float whole_rows(const Tile& x, const Tile& statistics) const {
    if (x.whole.empty()) return static_cast<float>(rows);
    return static_cast<float>(x.whole[0] / statistics.whole[0] * places);
  }
};

// kRows rows of n channels, one after another.

template <int kRows, class T>
void add_channel_rows(float* sums, const T* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    float sum = 0.0f;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum += to_float(x[r * n + c]);
    sums[c] += sum;
  }
}

template <int kRows, class T>
void add_squares(float* sums, const T* x, const float* means, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    float sum = 0.0f;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const float difference = to_float(x[r * n + c]) - means[c];
      sum += difference * difference;
    }
    sums[c] += sum;
  }
}

/// What is known of the channels of a group. Without a ReLU gradients do not take the bias.
template <class T>
struct Channels {
  std::int64_t count;
  const float *means, *scales;
  const T *gain, *bias;

  Channels of_group(std::int64_t group) const {
    return {count, means + group * count, scales + group * count, gain, bias};
  }
};

template <class T>
inline float normalized(T x, const Channels<T>& of, std::int64_t c) {
  return (to_float(x) - of.means[c]) * of.scales[c] * to_float(of.gain[c]) + to_float(of.bias[c]);
}

/// `residual` is added before the ReLU; null without kAdds.
template <bool kRelu, bool kAdds, class T>
void normalize(const T* x, const Channels<T>& of, const T* residual, T* y) {
#pragma omp simd
  for (std::int64_t c = 0; c < of.count; ++c) {
    float value = normalized(x[c], of, c);
    if constexpr (kAdds) value += to_float(residual[c]);
    y[c] = from_float<T>(!kRelu || value > 0.0f ? value : 0.0f);
  }
}

/// The gradient of x normalised, of which dy is the gradient, or with kRelu that of its ReLU.
template <bool kRelu, class T>
inline float gradient_of(T dy, T x, const Channels<T>& of, std::int64_t c) {
  if constexpr (kRelu) return normalized(x, of, c) > 0.0f ? to_float(dy) : 0.0f;
  return to_float(dy);
}

/// Adds dy and dy * h, where h is x normalised without gain and bias.
template <bool kRelu, int kRows, class T>
void add_gradients(float* dy_sums, float* dyh_sums, const T* dy, const T* x, const Channels<T>& of) {
  const std::int64_t n = of.count;
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    float sum = 0.0f, product = 0.0f;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t i = r * n + c;
      const float d = gradient_of<kRelu>(dy[i], x[i], of, c);
      sum += d;
      product += d * (to_float(x[i]) - of.means[c]);
    }
    dy_sums[c] += sum;
    dyh_sums[c] += product * of.scales[c];
  }
}

/// dx = scale * gain * (dy - mean(dy) - h * mean(dy h)); `part` is what one row is of a group.
template <bool kRelu, class T>
void normalize_gradient(const T* dy, const T* x, const Channels<T>& of, const float* dy_sums,
                        const float* dyh_sums, float part, T* dx) {
#pragma omp simd
  for (std::int64_t c = 0; c < of.count; ++c) {
    const float h = (to_float(x[c]) - of.means[c]) * of.scales[c];
    dx[c] =
        from_float<T>(of.scales[c] * to_float(of.gain[c]) *
                      (gradient_of<kRelu>(dy[c], x[c], of, c) - dy_sums[c] * part - h * dyh_sums[c] * part));
  }
}

/// body(group, row) for all rows.
template <class Body>
void for_rows(const Groups& s, const Body& body) {
  for_ranges(s.count * s.rows, row_grain(s.channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row / s.rows, row);
  });
}

/// add(rows, sums, group, row) for all rows, `rows` at once. Short rows are taken in fours, which spares most
/// of the traffic of the sums and of what is known of channels. Of long ones the processor would no longer
/// fetch in advance what lies in memory.
template <class T, class Add>
void gather_rows(ColumnSums& sums, const Groups& s, const Add& add) {
  constexpr std::size_t short_row = 256;  // bytes
  if (static_cast<std::size_t>(s.channels) * sizeof(T) <= short_row) return sums.gather_fours(add);
  sums.gather([&add](float* to, std::int64_t group, std::int64_t row) {
    add(std::integral_constant<int, 1>(), to, group, row);
  });
}

/// The sums of all groups' channels from column `first` on, each times `factor`.
void write_sums(const Groups& s, const ColumnSums& sums, std::int64_t first, float factor, float* to) {
  for (std::int64_t group = 0; group < s.count; ++group)
    for (std::int64_t c = 0; c < s.channels; ++c)
      to[group * s.channels + c] = sums.of(group)[first + c] * factor;
}

/// 1 / deviation of each channel of each group.
class Scales {
 public:
  Scales(const Groups& groups, const Attributes& attributes)
      : epsilon_(static_cast<float>(attributes.number("epsilon", 1e-5))), scales_(groups.statistics()) {}

  const float* of(const float* variances) {
    for (std::size_t i = 0; i < scales_.size(); ++i) scales_[i] = 1.0f / std::sqrt(variances[i] + epsilon_);
    return scales_.data();
  }

 private:
  float epsilon_;
  std::vector<float> scales_;
};

}  // namespace

std::unique_ptr<Kernel> running_statistic_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ff->f")) return nullptr;
  const std::int64_t groups = shape.operands[0].shape[0], channels = shape.operands[0].shape[1];
  return host_kernel([=](const KernelCall& call) {
    const float *statistic = call.operand<float>(0), *average = call.operand<float>(1);
    for (std::int64_t g = 0; g < groups; ++g)
      std::copy_n(call.point.trains ? statistic + g * channels : average, channels,
                  call.result<float>(0) + g * channels);
  });
}

std::unique_ptr<Kernel> running_update_cpu(const KernelShape& shape) {
  if (!types_match(shape, "fff->f")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  const auto momentum = static_cast<float>(shape.attributes.number("momentum"));
  const double correction =
      shape.attributes.number("correction", 1) / static_cast<double>(shape.attributes.integer("groups"));
  return host_kernel([=](const KernelCall& call) {
    const float* sums = call.operand<float>(1);
    const float to_mean = static_cast<float>(correction) * call.operand<UpdateScalars>(2)->per_micro_batch;
    float* average = call.result<float>(0);
    for (std::int64_t c = 0; c < count; ++c) average[c] += momentum * (sums[c] * to_mean - average[c]);
  });
}

std::unique_ptr<Kernel> channel_mean_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const Groups s(shape.operands[0], shape.results[0]);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sums = ColumnSums(s.count, s.rows, s.channels)](const KernelCall& call) mutable {
      gather_rows<T>(sums, s,
                     [s, x = call.operand<T>(0)](auto rows, float* to, std::int64_t, std::int64_t row) {
                       add_channel_rows<rows>(to, x + row * s.channels, s.channels);
                     });
      write_sums(s, sums, 0, 1.0f / s.whole_rows(call.operands[0], call.results[0]), call.result<float>(0));
    });
  });
}

std::unique_ptr<Kernel> channel_variance_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->f")) return nullptr;
  const Groups s(shape.operands[0], shape.results[0]);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sums = ColumnSums(s.count, s.rows, s.channels)](const KernelCall& call) mutable {
      const T* x = call.operand<T>(0);
      const float* means = call.operand<float>(1);
      gather_rows<T>(sums, s, [=](auto rows, float* to, std::int64_t group, std::int64_t row) {
        add_squares<rows>(to, x + row * s.channels, means + group * s.channels, s.channels);
      });
      write_sums(s, sums, 0, 1.0f / s.whole_rows(call.operands[0], call.results[0]), call.result<float>(0));
    });
  });
}

namespace {

template <bool kRelu, bool kAdds = false>
std::unique_ptr<Kernel> normalization(const KernelShape& shape) {
  if (!types_match(shape, kAdds ? "tffttt->t" : "tfftt->t")) return nullptr;
  const Groups s(shape.operands[0], shape.operands[1]);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, deviations = Scales(s, shape.attributes)](const KernelCall& call) mutable {
      const Channels<T> channels{s.channels, call.operand<float>(1), deviations.of(call.operand<float>(2)),
                                 call.operand<T>(3), call.operand<T>(4)};
      const T *x = call.operand<T>(0), *residual = kAdds ? call.operand<T>(5) : nullptr;
      T* y = call.result<T>(0);
      for_rows(s, [=](std::int64_t group, std::int64_t row) {
        const std::int64_t at = row * s.channels;
        normalize<kRelu, kAdds>(x + at, channels.of_group(group), kAdds ? residual + at : nullptr, y + at);
      });
    });
  });
}

template <bool kRelu>
std::unique_ptr<Kernel> gradient_sums(const KernelShape& shape) {
  if (!types_match(shape, kRelu ? "ttfftt->ff" : "ttff->ff")) return nullptr;
  const Groups s(shape.operands[0], shape.operands[2]);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, deviations = Scales(s, shape.attributes),
                        sums = ColumnSums(s.count, s.rows, 2 * s.channels)](const KernelCall& call) mutable {
      const Channels<T> channels{s.channels, call.operand<float>(2), deviations.of(call.operand<float>(3)),
                                 kRelu ? call.operand<T>(4) : nullptr, kRelu ? call.operand<T>(5) : nullptr};
      const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
      gather_rows<T>(sums, s, [=](auto rows, float* to, std::int64_t group, std::int64_t row) {
        const std::int64_t at = row * s.channels;
        add_gradients<kRelu, rows>(to, to + s.channels, dy + at, x + at, channels.of_group(group));
      });
      write_sums(s, sums, 0, 1.0f, call.result<float>(0));
      write_sums(s, sums, s.channels, 1.0f, call.result<float>(1));
    });
  });
}

template <bool kRelu>
std::unique_ptr<Kernel> gradient(const KernelShape& shape) {
  if (!types_match(shape, kRelu ? "ttffttff->t" : "ttfftff->t")) return nullptr;
  const Groups s(shape.operands[0], shape.operands[2]);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, deviations = Scales(s, shape.attributes)](const KernelCall& call) mutable {
      constexpr std::size_t first_sums = kRelu ? 6 : 5;
      const Channels<T> channels{s.channels, call.operand<float>(2), deviations.of(call.operand<float>(3)),
                                 call.operand<T>(4), kRelu ? call.operand<T>(5) : nullptr};
      const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
      const float *dy_sums = call.operand<float>(first_sums), *dyh_sums = call.operand<float>(first_sums + 1);
      const float part = 1.0f / s.whole_rows(call.operands[0], call.operands[2]);
      T* dx = call.result<T>(0);
      for_rows(s, [=](std::int64_t group, std::int64_t row) {
        const std::int64_t at = row * s.channels, first = group * s.channels;
        normalize_gradient<kRelu>(dy + at, x + at, channels.of_group(group), dy_sums + first,
                                  dyh_sums + first, part, dx + at);
      });
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> batch_norm_cpu(const KernelShape& shape) { return normalization<false>(shape); }
std::unique_ptr<Kernel> batch_norm_relu_cpu(const KernelShape& shape) { return normalization<true>(shape); }
std::unique_ptr<Kernel> batch_norm_add_relu_cpu(const KernelShape& shape) {
  return normalization<true, true>(shape);
}
std::unique_ptr<Kernel> batch_norm_sums_cpu(const KernelShape& shape) { return gradient_sums<false>(shape); }
std::unique_ptr<Kernel> batch_norm_grad_cpu(const KernelShape& shape) { return gradient<false>(shape); }

std::unique_ptr<Kernel> batch_norm_relu_sums_cpu(const KernelShape& shape) {
  return gradient_sums<true>(shape);
}
std::unique_ptr<Kernel> batch_norm_relu_grad_cpu(const KernelShape& shape) { return gradient<true>(shape); }

}  // namespace alpa::ops
