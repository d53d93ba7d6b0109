#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cuda/gradient_factor.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/vector_access.cuh"

namespace alpa::ops {
namespace {

struct AdamW {
  double clip;
  float beta1, beta2, rest1, rest2;  ///< rest: 1 - beta
  float epsilon, weight_decay;

  explicit AdamW(const Attributes& a)
      : clip(a.number("clip", 0)),
        beta1(static_cast<float>(a.number("beta1"))),
        beta2(static_cast<float>(a.number("beta2"))),
        rest1(static_cast<float>(1 - a.number("beta1"))),
        rest2(static_cast<float>(1 - a.number("beta2"))),
        epsilon(static_cast<float>(a.number("epsilon"))),
        weight_decay(static_cast<float>(a.number("weight_decay", 0))) {}
};

struct Sgd {
  double clip;
  float momentum, weight_decay;
  bool nesterov;

  explicit Sgd(const Attributes& a)
      : clip(a.number("clip", 0)),
        momentum(static_cast<float>(a.number("momentum"))),
        weight_decay(static_cast<float>(a.number("weight_decay", 0))),
        nesterov(a.integer("nesterov", 0) != 0) {}
};

/// Updates w, m, v in place, unless the norm is not finite; rounds w to `working` unless that is null.
template <class G, class Working>
__global__ void adamw_update(AdamW a, std::int64_t count, const G* gradient, const UpdateScalars* scalars,
                             const float* square_norm, float* w, float* m, float* v, Working* working) {
  if (!isfinite(*square_norm)) return;
  const float factor = gradient_factor(a.clip, *square_norm, scalars->per_loss_scale);
  const float step = scalars->learning_rate / scalars->bias_correction1,
              root_correction = 1.0f / sqrtf(scalars->bias_correction2);
  const float keep = 1.0f - scalars->learning_rate * a.weight_decay;
  constexpr int together = kVector<G, float>;
  const std::int64_t head = before_vectors<together>(gradient, w, m, v, working);
  for_vectors<together>(share_of_grid(), count, head, [=](std::int64_t i, auto n) {
    const auto gradients = load<n>(gradient + i);
    auto weights = load<n>(w + i), first = load<n>(m + i), second = load<n>(v + i);
    for (int k = 0; k < n.value; ++k) {
      const float g = gradients.at[k] * factor;
      first.at[k] = a.beta1 * first.at[k] + a.rest1 * g;
      second.at[k] = a.beta2 * second.at[k] + a.rest2 * g * g;
      weights.at[k] =
          weights.at[k] * keep - step * first.at[k] / (sqrtf(second.at[k]) * root_correction + a.epsilon);
    }
    store(m + i, first);
    store(v + i, second);
    store(w + i, weights);
    if (working) store(working + i, weights);
  });
}

/// As adamw_update; `v` is the momentum.
template <class G, class Working>
__global__ void sgd_update(Sgd a, std::int64_t count, const G* gradient, const UpdateScalars* scalars,
                           const float* square_norm, float* w, float* v, Working* working) {
  if (!isfinite(*square_norm)) return;
  const float factor = gradient_factor(a.clip, *square_norm, scalars->per_loss_scale),
              rate = scalars->learning_rate;
  constexpr int together = kVector<G, float>;
  const std::int64_t head = before_vectors<together>(gradient, w, v, working);
  for_vectors<together>(share_of_grid(), count, head, [=](std::int64_t i, auto n) {
    const auto gradients = load<n>(gradient + i);
    auto weights = load<n>(w + i), velocities = load<n>(v + i);
    for (int k = 0; k < n.value; ++k) {
      const float g = gradients.at[k] * factor + a.weight_decay * weights.at[k],
                  velocity = a.momentum * velocities.at[k] + g;
      weights.at[k] -= rate * (a.nesterov ? a.momentum * velocity + g : velocity);
      velocities.at[k] = velocity;
    }
    store(v + i, velocities);
    store(w + i, weights);
    if (working) store(working + i, weights);
  });
}

/// Threads take several vectors each, as they have factors to work out first.
template <int N>
dim3 grid_for_update(std::int64_t count) {
  return grid_for_vectors<4 * N>(count);
}

/// A result after the weights and moments takes the rounded weights.
template <class Working>
Working* working_weights(const KernelCall& call, std::size_t result) {
  return result < call.results.size() ? call.result<Working>(result) : nullptr;
}

template <class Working>
std::unique_ptr<Kernel> adamw_kernel(const KernelShape& shape) {
  return for_float_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return cuda_kernel([count = element_count(shape.operands[0].shape), adamw = AdamW(shape.attributes)](
                           const KernelCall& c, cudaStream_t stream) {
      launch(stream, grid_for_update<kVector<G, float>>(count), kThreads, adamw_update<G, Working>, adamw,
             count, c.operand<G>(1), c.operand<UpdateScalars>(4), c.operand<float>(5), c.result<float>(0),
             c.result<float>(1), c.result<float>(2), working_weights<Working>(c, 3));
    });
  });
}

template <class Working>
std::unique_ptr<Kernel> sgd_kernel(const KernelShape& shape) {
  return for_float_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return cuda_kernel([count = element_count(shape.operands[0].shape), sgd = Sgd(shape.attributes)](
                           const KernelCall& c, cudaStream_t stream) {
      launch(stream, grid_for_update<kVector<G, float>>(count), kThreads, sgd_update<G, Working>, sgd, count,
             c.operand<G>(1), c.operand<UpdateScalars>(3), c.operand<float>(4), c.result<float>(0),
             c.result<float>(1), working_weights<Working>(c, 2));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> adamw_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "ffffff->fff") ? adamw_kernel<float>(shape) : nullptr;
}

std::unique_ptr<Kernel> adamw_master_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "fafffft->ffft")) return nullptr;
  return for_float_type(shape.results[3].dtype,
                        [&](auto zero) { return adamw_kernel<decltype(zero)>(shape); });
}

std::unique_ptr<Kernel> sgd_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "fffff->ff") ? sgd_kernel<float>(shape) : nullptr;
}

std::unique_ptr<Kernel> sgd_master_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "faffft->fft")) return nullptr;
  return for_float_type(shape.results[2].dtype, [&](auto zero) { return sgd_kernel<decltype(zero)>(shape); });
}

}  // namespace alpa::ops
