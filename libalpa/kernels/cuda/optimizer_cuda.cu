#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/gradient_factor.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

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
  for_elements(count, [=](std::int64_t i) {
    const float g = widened(gradient[i]) * factor;
    const float first = a.beta1 * m[i] + a.rest1 * g, second = a.beta2 * v[i] + a.rest2 * g * g;
    const float weight = w[i] * keep - step * first / (sqrtf(second) * root_correction + a.epsilon);
    m[i] = first;
    v[i] = second;
    w[i] = weight;
    if (working) working[i] = narrowed<Working>(weight);
  });
}

/// As adamw_update; `v` is the momentum.
template <class G, class Working>
__global__ void sgd_update(Sgd a, std::int64_t count, const G* gradient, const UpdateScalars* scalars,
                           const float* square_norm, float* w, float* v, Working* working) {
  if (!isfinite(*square_norm)) return;
  const float factor = gradient_factor(a.clip, *square_norm, scalars->per_loss_scale),
              rate = scalars->learning_rate;
  for_elements(count, [=](std::int64_t i) {
    const float g = widened(gradient[i]) * factor + a.weight_decay * w[i], velocity = a.momentum * v[i] + g;
    const float weight = w[i] - rate * (a.nesterov ? a.momentum * velocity + g : velocity);
    v[i] = velocity;
    w[i] = weight;
    if (working) working[i] = narrowed<Working>(weight);
  });
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
      launch(stream, grid_for(count), kThreads, adamw_update<G, Working>, adamw, count, c.operand<G>(1),
             c.operand<UpdateScalars>(4), c.operand<float>(5), c.result<float>(0), c.result<float>(1),
             c.result<float>(2), working_weights<Working>(c, 3));
    });
  });
}

template <class Working>
std::unique_ptr<Kernel> sgd_kernel(const KernelShape& shape) {
  return for_float_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return cuda_kernel([count = element_count(shape.operands[0].shape), sgd = Sgd(shape.attributes)](
                           const KernelCall& c, cudaStream_t stream) {
      launch(stream, grid_for(count), kThreads, sgd_update<G, Working>, sgd, count, c.operand<G>(1),
             c.operand<UpdateScalars>(3), c.operand<float>(4), c.result<float>(0), c.result<float>(1),
             working_weights<Working>(c, 2));
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
