#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/recurrent_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"

namespace alpa::ops {
namespace {

/// One sample's step, from its gates x without the products of the state and their bias.
template <class T>
void forward_row(std::int64_t n, const T* x, const float* products, const T* bias, float* state, T* hidden,
                 T* activations, T* recurrent) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float p = products[2 * n + j] + to_float(bias[2 * n + j]);
    const float r = sigmoid(to_float(x[j]) + products[j] + to_float(bias[j]));
    const float z = sigmoid(to_float(x[n + j]) + products[n + j] + to_float(bias[n + j]));
    const float new_gate = fast_tanh(to_float(x[2 * n + j]) + r * p);
    const float h = (1.0f - z) * new_gate + z * state[j];
    state[j] = h;
    hidden[j] = from_float<T>(h);
    activations[j] = from_float<T>(r);
    activations[n + j] = from_float<T>(z);
    activations[2 * n + j] = from_float<T>(new_gate);
    recurrent[j] = from_float<T>(p);
  }
}

/// One sample's step backwards: the gradient of its gates, that of its products into `step` and `dproducts`;
/// `dstate` becomes the part of that of the state before it, `before`, that does not pass the products.
template <class T>
void backward_row(std::int64_t n, const T* dhidden, const T* before, const T* recurrent, const T* activations,
                  float* dstate, float* step, T* dgates, T* dproducts) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float r = to_float(activations[j]), z = to_float(activations[n + j]);
    const float new_gate = to_float(activations[2 * n + j]), h = to_float(before[j]);
    const float dh = dstate[j] + to_float(dhidden[j]);
    const float dnew = dh * (1.0f - z) * (1.0f - new_gate * new_gate);
    const float dr = dnew * to_float(recurrent[j]) * r * (1.0f - r);
    const float dz = dh * (h - new_gate) * z * (1.0f - z);
    dstate[j] = dh * z;
    step[j] = dr;
    step[n + j] = dz;
    step[2 * n + j] = dnew * r;
    dgates[j] = dproducts[j] = from_float<T>(dr);
    dgates[n + j] = dproducts[n + j] = from_float<T>(dz);
    dgates[2 * n + j] = from_float<T>(dnew);
    dproducts[2 * n + j] = from_float<T>(dnew * r);
  }
}

}  // namespace

std::unique_ptr<Kernel> gru_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttti->ttt")) return nullptr;
  const RecurrentExtents e(shape.operands[0], shape.operands[1], shape.attributes, false);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([e](const KernelCall& call) {
      const RecurrentCall r(e, call.operand<std::int32_t>(3), call.workspace);
      const std::int64_t n = e.width, wide = e.gate_width();
      const T *gates = call.operand<T>(0), *bias = call.operand<T>(2);
      T *hidden = call.result<T>(0), *activations = call.result<T>(1), *recurrent = call.result<T>(2);
      r.run(call.operand<T>(1), [=](std::int64_t i, RecurrentStep s) {
        forward_row(n, gates + s.at * wide, r.step + i * wide, bias, r.state + i * n, hidden + s.at * n,
                    activations + s.at * wide, recurrent + s.at * n);
      });
      r.clear_padding(hidden, n);
      r.clear_padding(activations, wide);
      r.clear_padding(recurrent, n);
    });
  });
}

std::unique_ptr<Kernel> gru_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttttti->ttt")) return nullptr;
  const RecurrentExtents e(shape.operands[3], shape.operands[4], shape.attributes, true);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([e](const KernelCall& call) {
      const RecurrentCall r(e, call.operand<std::int32_t>(5), call.workspace);
      const std::int64_t n = e.width, wide = e.gate_width();
      const T *dhidden = call.operand<T>(0), *hidden = call.operand<T>(1), *recurrent = call.operand<T>(2),
              *activations = call.operand<T>(3);
      T *dgates = call.result<T>(0), *dproducts = call.result<T>(1), *previous = call.result<T>(2);
      r.run_backward(call.operand<T>(4), hidden, previous, 1.0f,
                     [=, &r](std::int64_t i, RecurrentStep s, const T* before) {
                       backward_row(n, dhidden + s.at * n, before, recurrent + s.at * n,
                                    activations + s.at * wide, r.state + i * n, r.step + i * wide,
                                    dgates + s.at * wide, dproducts + s.at * wide);
                     });
      r.clear_padding(dgates, wide);
      r.clear_padding(dproducts, wide);
    });
  });
}

}  // namespace alpa::ops
