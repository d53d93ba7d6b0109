#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/recurrent_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"

namespace alpa::ops {
namespace {

/// One sample's step, from its gates x without the products of the state; state and cell become those after.
template <class T>
void forward_row(std::int64_t n, const T* x, const float* products, float* state, float* cell, T* hidden,
                 T* cells, T* activations) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float i = sigmoid(to_float(x[j]) + products[j]);
    const float f = sigmoid(to_float(x[n + j]) + products[n + j]);
    const float g = fast_tanh(to_float(x[2 * n + j]) + products[2 * n + j]);
    const float o = sigmoid(to_float(x[3 * n + j]) + products[3 * n + j]);
    const float c = f * cell[j] + i * g, h = o * fast_tanh(c);
    cell[j] = c;
    state[j] = h;
    cells[j] = from_float<T>(c);
    hidden[j] = from_float<T>(h);
    activations[j] = from_float<T>(i);
    activations[n + j] = from_float<T>(f);
    activations[2 * n + j] = from_float<T>(g);
    activations[3 * n + j] = from_float<T>(o);
  }
}

/// One sample's step backwards: the gradient of its gates into `step` and `dgates`, that of the cell before
/// it, `before`, into `dcell`.
template <class T>
void backward_row(std::int64_t n, const T* dhidden, const T* cells, const T* before, const T* activations,
                  const float* dstate, float* dcell, float* step, T* dgates) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float i = to_float(activations[j]), f = to_float(activations[n + j]);
    const float g = to_float(activations[2 * n + j]), o = to_float(activations[3 * n + j]);
    const float y = fast_tanh(to_float(cells[j])), dh = dstate[j] + to_float(dhidden[j]);
    const float dc = dcell[j] + dh * o * (1.0f - y * y);
    step[j] = dc * g * i * (1.0f - i);
    step[n + j] = dc * to_float(before[j]) * f * (1.0f - f);
    step[2 * n + j] = dc * i * (1.0f - g * g);
    step[3 * n + j] = dh * y * o * (1.0f - o);
    dcell[j] = dc * f;
  }
#pragma omp simd
  for (std::int64_t j = 0; j < 4 * n; ++j) dgates[j] = from_float<T>(step[j]);
}

}  // namespace

std::unique_ptr<Kernel> lstm_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tti->ttt")) return nullptr;
  const RecurrentExtents e(shape.operands[0], shape.operands[1], shape.attributes, false);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([e](const KernelCall& call) {
      const RecurrentCall r(e, call.operand<std::int32_t>(2), call.workspace);
      const std::int64_t n = e.width, wide = e.gate_width();
      const T* gates = call.operand<T>(0);
      T *hidden = call.result<T>(0), *cells = call.result<T>(1), *activations = call.result<T>(2);
      r.run(call.operand<T>(1), [=](std::int64_t i, RecurrentStep s) {
        forward_row(n, gates + s.at * wide, r.step + i * wide, r.state + i * n, r.cell + i * n,
                    hidden + s.at * n, cells + s.at * n, activations + s.at * wide);
      });
      r.clear_padding(hidden, n);
      r.clear_padding(cells, n);
      r.clear_padding(activations, wide);
    });
  });
}

std::unique_ptr<Kernel> lstm_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttttti->tt")) return nullptr;
  const RecurrentExtents e(shape.operands[3], shape.operands[4], shape.attributes, true);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([e](const KernelCall& call) {
      const RecurrentCall r(e, call.operand<std::int32_t>(5), call.workspace);
      const std::int64_t n = e.width, wide = e.gate_width();
      const T *dhidden = call.operand<T>(0), *hidden = call.operand<T>(1), *cells = call.operand<T>(2),
              *activations = call.operand<T>(3);
      T *dgates = call.result<T>(0), *previous = call.result<T>(1);
      r.run_backward(call.operand<T>(4), hidden, previous, 0.0f,
                     [=, &r](std::int64_t i, RecurrentStep s, const T*) {
                       backward_row(n, dhidden + s.at * n, cells + s.at * n, r.row_before(cells, s),
                                    activations + s.at * wide, r.state + i * n, r.cell + i * n,
                                    r.step + i * wide, dgates + s.at * wide);
                     });
      r.clear_padding(dgates, wide);
    });
  });
}

}  // namespace alpa::ops
