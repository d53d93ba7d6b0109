#include <cmath>

#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cpu/gradient_factor.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/double_sum.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

struct AdamW {
  double clip, beta1, beta2, epsilon, weight_decay;

  explicit AdamW(const Attributes& a)
      : clip(a.number("clip", 0)),
        beta1(a.number("beta1")),
        beta2(a.number("beta2")),
        epsilon(a.number("epsilon")),
        weight_decay(a.number("weight_decay", 0)) {}

  /// Updates w, m, v in place, unless the norm is not finite; rounds w to `working` unless that is null.
  template <class G>
  void run(std::int64_t count, const G* gradient, const UpdateScalars& scalars, float square_norm, float* w,
           float* m, float* v, Bfloat16* working) const {
    if (!std::isfinite(square_norm)) return;
    const float factor = gradient_factor(clip, square_norm, scalars.per_loss_scale),
                rate = scalars.learning_rate;
    const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
    const auto c1 = static_cast<float>(1 - beta1), c2 = static_cast<float>(1 - beta2);
    const float step = rate / scalars.bias_correction1,
                root_correction = 1.0f / std::sqrt(scalars.bias_correction2);
    const float keep = 1.0f - rate * static_cast<float>(weight_decay), tiny = static_cast<float>(epsilon);
    for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float g = to_float(gradient[i]) * factor;
        const float first = b1 * m[i] + c1 * g, second = b2 * v[i] + c2 * g * g;
        m[i] = first;
        v[i] = second;
        w[i] = w[i] * keep - step * first / (std::sqrt(second) * root_correction + tiny);
      }
      if (!working) return;
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) working[i] = to_bfloat16(w[i]);
    });
  }
};

struct Sgd {
  double clip, momentum, weight_decay;
  bool nesterov;

  explicit Sgd(const Attributes& a)
      : clip(a.number("clip", 0)),
        momentum(a.number("momentum")),
        weight_decay(a.number("weight_decay", 0)),
        nesterov(a.integer("nesterov", 0) != 0) {}

  template <class G>
  void run(std::int64_t count, const G* gradient, const UpdateScalars& scalars, float square_norm, float* w,
           float* v, Bfloat16* working) const {
    if (!std::isfinite(square_norm)) return;
    const float factor = gradient_factor(clip, square_norm, scalars.per_loss_scale),
                rate = scalars.learning_rate;
    const auto kept = static_cast<float>(momentum), decay = static_cast<float>(weight_decay);
    // w -= rate * (kept_ahead * v + ahead * g), v the new velocity.
    const float kept_ahead = nesterov ? kept : 1.0f, ahead = nesterov ? 1.0f : 0.0f;
    for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float g = to_float(gradient[i]) * factor + decay * w[i], velocity = kept * v[i] + g;
        v[i] = velocity;
        w[i] = w[i] - rate * (kept_ahead * velocity + ahead * g);
      }
      if (!working) return;
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) working[i] = to_bfloat16(w[i]);
    });
  }
};

/// S: of the sum.
template <class S>
std::unique_ptr<Kernel> accumulate_kernel(const KernelShape& shape) {
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      S* sum = call.result<S>(0);
      const bool add = call.accumulate;
      for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
        if (add) {
#pragma omp simd
          for (std::int64_t i = begin; i < end; ++i)
            sum[i] = from_float<S>(to_float(sum[i]) + to_float(x[i]));
          return;
        }
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) sum[i] = from_float<S>(to_float(x[i]));
      });
    });
  });
}

/// A result after the weights and moments takes the rounded weights.
Bfloat16* working_weights(const KernelCall& call, std::size_t result) {
  return result < call.results.size() ? call.result<Bfloat16>(result) : nullptr;
}

std::unique_ptr<Kernel> adamw_kernel(const KernelShape& shape) {
  return for_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return host_kernel([count = element_count(shape.operands[0].shape),
                        adamw = AdamW(shape.attributes)](const KernelCall& c) {
      adamw.run(count, c.operand<G>(1), *c.operand<UpdateScalars>(4), *c.operand<float>(5),
                c.result<float>(0), c.result<float>(1), c.result<float>(2), working_weights(c, 3));
    });
  });
}

std::unique_ptr<Kernel> sgd_kernel(const KernelShape& shape) {
  return for_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return host_kernel(
        [count = element_count(shape.operands[0].shape), sgd = Sgd(shape.attributes)](const KernelCall& c) {
          sgd.run(count, c.operand<G>(1), *c.operand<UpdateScalars>(3), *c.operand<float>(4),
                  c.result<float>(0), c.result<float>(1), working_weights(c, 2));
        });
  });
}

}  // namespace

std::unique_ptr<Kernel> adamw_cpu(const KernelShape& shape) {
  return types_match(shape, "ffffff->fff") ? adamw_kernel(shape) : nullptr;
}

std::unique_ptr<Kernel> adamw_master_cpu(const KernelShape& shape) {
  const bool matches = types_match(shape, "fafffft->ffft") && shape.results[3].dtype == DType::bf16;
  return matches ? adamw_kernel(shape) : nullptr;
}

std::unique_ptr<Kernel> sgd_cpu(const KernelShape& shape) {
  return types_match(shape, "fffff->ff") ? sgd_kernel(shape) : nullptr;
}

std::unique_ptr<Kernel> sgd_master_cpu(const KernelShape& shape) {
  const bool matches = types_match(shape, "faffft->fft") && shape.results[2].dtype == DType::bf16;
  return matches ? sgd_kernel(shape) : nullptr;
}

std::unique_ptr<Kernel> accumulate_cpu(const KernelShape& shape) {
  return types_match(shape, "t->f") ? accumulate_kernel<float>(shape) : nullptr;
}

std::unique_ptr<Kernel> accumulate_rounded_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->a")) return nullptr;
  return for_type(shape.results[0].dtype,
                  [&](auto zero) { return accumulate_kernel<decltype(zero)>(shape); });
}

std::unique_ptr<Kernel> held_back_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  return host_kernel([bytes = byte_count(shape.results[0])](const KernelCall& call) {
    std::copy_n(call.operand<std::byte>(0), bytes, call.result<std::byte>(0));
  });
}

std::unique_ptr<Kernel> sum_squares_cpu(const KernelShape& shape) {
  for (const TensorType& type : shape.operands)
    if (type.dtype == DType::i32) return nullptr;
  return host_kernel(
      [types = shape.operands, weight = shape.attributes.number("weight", 1)](const KernelCall& call) {
        double sum = 0;
        for (std::size_t i = 0; i < types.size(); ++i) {
          const std::int64_t count = element_count(types[i].shape);
          sum += types[i].dtype == DType::f32 ? double_sum<Power::two>(call.operand<float>(i), count)
                                              : double_sum<Power::two>(call.operand<Bfloat16>(i), count);
        }
        float* result = call.result<float>(0);
        *result = static_cast<float>(weight * sum + (call.accumulate ? static_cast<double>(*result) : 0.0));
      });
}

}  // namespace alpa::ops
