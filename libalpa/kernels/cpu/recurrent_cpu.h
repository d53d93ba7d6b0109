#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/recurrent_scratch.h"

namespace alpa {

/// What all calls of one recurrent kernel have in common.
struct RecurrentExtents {
  std::int64_t batch, steps, gates, width;
  bool reverse;
  RecurrentScratch scratch;

  RecurrentExtents(const TensorType& gates_type, const TensorType& weight, const Attributes& attributes,
                   bool gradient)
      : batch(gates_type.shape[0]),
        steps(gates_type.shape[1]),
        gates(gates_type.shape[2]),
        width(gates_type.shape[3]),
        reverse(attributes.integer("reverse", 0) != 0),
        scratch(gates_type, weight, gradient) {}

  std::int64_t gate_width() const { return gates * width; }
};

/// A step of a sample: where it lies in [b s], and where the step that is worked off before it does; that is
/// -1 for the first.
struct RecurrentStep {
  std::int64_t at, before;
};

/// The samples of one call in the order of their lengths, the longest first, so that those that have not
/// ended at a step are the first ones and their states a matrix without gaps: steps of padding take no time.
/// States are f32, in that order.
class RecurrentCall {
 public:
  /// Sorts; `state` and `cell` become zero.
  RecurrentCall(const RecurrentExtents&, const std::int32_t* lengths, void* workspace);

  float *state, *cell, *step;

  /// The recurrence: `step` becomes the product of the state and the weight, then row(row of the states, the
  /// step) makes the state after it, one sample after another.
  template <class T, class Row>
  void run(const T* weight, const Row& row) const {
    const float* in_f32_weight = in_f32(weight);
    for_steps(false, [&](std::int64_t t, std::int64_t samples) {
      multiply_state(in_f32_weight, samples);
      for_samples(t, samples, row);
    });
  }

  /// The recurrence against its order: row(row of the states, the step, hidden state before it) makes `step`,
  /// the gradient of the products; that of the state before becomes its product with the weight, and `keep`
  /// times what the row left in `state`. `previous` becomes the hidden states before each step.
  template <class T, class Row>
  void run_backward(const T* weight, const T* hidden, T* previous, float keep, const Row& row) const {
    const float* transposed_weight = transposed(weight);
    const std::int64_t n = e_.width;
    for_steps(true, [&](std::int64_t t, std::int64_t samples) {
      for_samples(t, samples, [=, this](std::int64_t i, RecurrentStep s) {
        const T* before = row_before(hidden, s);
        std::copy(before, before + n, previous + s.at * n);
        row(i, s, before);
      });
      multiply_step(transposed_weight, samples, keep);
    });
    clear_padding(previous, n);
  }

  /// body(step, samples that have it) for all steps, in the order of the recurrence or against it.
  template <class Body>
  void for_steps(bool against, const Body& body) const {
    const std::int64_t most = e_.batch == 0 ? 0 : length(order_[0]);
    for (std::int64_t i = 0; i < most; ++i) {
      const std::int64_t t = e_.reverse == against ? i : most - 1 - i;
      const auto* end = std::partition_point(order_, order_ + e_.batch,
                                             [&](std::int32_t sample) { return length(sample) > t; });
      body(t, end - order_);
    }
  }

  /// body(row of the states, the step), vectorised, for the `samples` first of them at step t.
  template <class Body>
  void for_samples(std::int64_t t, std::int64_t samples, const Body& body) const {
    for_ranges(samples, row_grain(e_.gate_width()), [&, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = order_[i] * e_.steps + t;
        const bool first = e_.reverse ? t + 1 == length(order_[i]) : t == 0;
        body(i, RecurrentStep{at, first ? -1 : e_.reverse ? at + 1 : at - 1});
      }
    });
  }

  /// The row of hidden states or cells [b s h] before that step; zeros before the first.
  template <class T>
  const T* row_before(const T* rows, const RecurrentStep& s) const {
    static_assert(sizeof(T) <= sizeof(float));
    if (s.before < 0) return reinterpret_cast<const T*>(workspace_ + e_.scratch.zeros);
    return rows + s.before * e_.width;
  }

  /// Makes rows of `width` numbers zero beyond each sample's length.
  template <class T>
  void clear_padding(T* rows, std::int64_t width) const {
    for_ranges(e_.batch, row_grain(e_.steps * width), [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        std::fill(rows + (i * e_.steps + length(i)) * width, rows + (i + 1) * e_.steps * width, T{});
    });
  }

  /// The weight in f32, which takes a copy where it is bf16.
  template <class T>
  const float* in_f32(const T* weight) const {
    if constexpr (std::is_same_v<T, float>) {
      return weight;
    } else {
      float* copy = workspace_ + e_.scratch.weight;
      for_ranges(e_.width * e_.gate_width(), kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) copy[i] = to_float(weight[i]);
      });
      return copy;
    }
  }

  /// The weight transposed, [g h h], in f32: oneDNN multiplies by it up to twice as fast as by the weight
  /// taken for transposed.
  template <class T>
  const float* transposed(const T* weight) const {
    float* copy = workspace_ + e_.scratch.weight;
    const std::int64_t width = e_.width, wide = e_.gate_width();
    for_ranges(wide, row_grain(width), [=](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t block = 16;  // of a cache line
      for (std::int64_t first = begin; first < end; first += block)
        for (std::int64_t k = 0; k < width; ++k)
          for (std::int64_t j = first; j < std::min(first + block, end); ++j)
            copy[j * width + k] = to_float(weight[k * wide + j]);
    });
    return copy;
  }

  /// step = state weight, for the first samples.
  void multiply_state(const float* weight, std::int64_t samples) const {
    multiply_on_all_threads({samples, e_.gate_width(), e_.width}, {{false, e_.width}, state},
                            {{false, e_.gate_width()}, weight}, 0.0f, {step, e_.gate_width()});
  }

  /// state = step transposed weight + keep * state, for the first samples.
  void multiply_step(const float* transposed, std::int64_t samples, float keep) const {
    multiply_on_all_threads({samples, e_.width, e_.gate_width()}, {{false, e_.gate_width()}, step},
                            {{false, e_.width}, transposed}, keep, {state, e_.width});
  }

 private:
  std::int64_t length(std::int64_t sample) const {
    return std::clamp<std::int64_t>(lengths_[sample], 0, e_.steps);
  }

  const RecurrentExtents& e_;
  const std::int32_t* lengths_;
  float* workspace_;
  std::int32_t* order_;
};

}  // namespace alpa
