#include "libalpa/kernels/cuda_kernel.cuh"
#include "libalpa/kernels/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// Factor that brings a gradient of this squared norm within `clip`; 0 does not clip.
__device__ inline float clip_factor(double clip, float square_norm) {
  const double norm = sqrt(static_cast<double>(square_norm));
  return clip > 0 && norm > clip ? static_cast<float>(clip / norm) : 1.0f;
}

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

/// Updates w, m, v in place; rounds w to `working` unless that is null. scalars = {learning rate, 1 -
/// beta1^t, 1 - beta2^t, 0}.
__global__ void adamw_update(AdamW a, std::int64_t count, const float* gradient, const float* scalars,
                             const float* square_norm, float* w, float* m, float* v, Bfloat16* working) {
  const float factor = clip_factor(a.clip, *square_norm);
  const float step = scalars[0] / scalars[1], root_correction = 1.0f / sqrtf(scalars[2]);
  const float keep = 1.0f - scalars[0] * a.weight_decay;
  for_elements(count, [=](std::int64_t i) {
    const float g = gradient[i] * factor;
    const float first = a.beta1 * m[i] + a.rest1 * g, second = a.beta2 * v[i] + a.rest2 * g * g;
    const float weight = w[i] * keep - step * first / (sqrtf(second) * root_correction + a.epsilon);
    m[i] = first;
    v[i] = second;
    w[i] = weight;
    if (working) working[i] = narrowed<Bfloat16>(weight);
  });
}

/// As adamw_update; `v` is the momentum, scalars[0] the learning rate.
__global__ void sgd_update(Sgd a, std::int64_t count, const float* gradient, const float* scalars,
                           const float* square_norm, float* w, float* v, Bfloat16* working) {
  const float factor = clip_factor(a.clip, *square_norm), rate = scalars[0];
  for_elements(count, [=](std::int64_t i) {
    const float g = gradient[i] * factor + a.weight_decay * w[i], velocity = a.momentum * v[i] + g;
    const float weight = w[i] - rate * (a.nesterov ? a.momentum * velocity + g : velocity);
    v[i] = velocity;
    w[i] = weight;
    if (working) working[i] = narrowed<Bfloat16>(weight);
  });
}

/// `with_working`: result 3 takes the rounded weights.
std::unique_ptr<Kernel> adamw_kernel(const KernelShape& shape, bool with_working) {
  return cuda_kernel([count = element_count(shape.operands[0].shape), adamw = AdamW(shape.attributes),
                      with_working](const KernelCall& c, cudaStream_t stream) {
    launch(stream, grid_for(count), kThreads, adamw_update, adamw, count, c.operand<float>(1),
           c.operand<float>(4), c.operand<float>(5), c.result<float>(0), c.result<float>(1),
           c.result<float>(2), with_working ? c.result<Bfloat16>(3) : nullptr);
  });
}

/// `with_working`: result 2 takes the rounded weights.
std::unique_ptr<Kernel> sgd_kernel(const KernelShape& shape, bool with_working) {
  return cuda_kernel([count = element_count(shape.operands[0].shape), sgd = Sgd(shape.attributes),
                      with_working](const KernelCall& c, cudaStream_t stream) {
    launch(stream, grid_for(count), kThreads, sgd_update, sgd, count, c.operand<float>(1),
           c.operand<float>(3), c.operand<float>(4), c.result<float>(0), c.result<float>(1),
           with_working ? c.result<Bfloat16>(2) : nullptr);
  });
}

}  // namespace

std::unique_ptr<Kernel> adamw_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "ffffff->fff") ? adamw_kernel(shape, false) : nullptr;
}

std::unique_ptr<Kernel> adamw_master_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "fffffft->ffft") || shape.results[3].dtype != DType::bf16) return nullptr;
  return adamw_kernel(shape, true);
}

std::unique_ptr<Kernel> sgd_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "fffff->ff") ? sgd_kernel(shape, false) : nullptr;
}

std::unique_ptr<Kernel> sgd_master_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ffffft->fft") || shape.results[2].dtype != DType::bf16) return nullptr;
  return sgd_kernel(shape, true);
}

}  // namespace alpa::ops
