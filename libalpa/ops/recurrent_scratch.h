#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// Scratch memory of the CPU kernels of recurrent layers, in numbers of four bytes: where its pieces begin.
/// What passes from step to step stays in f32, also in bf16 calls.
struct RecurrentScratch {
  std::int64_t order = 0;  ///< of samples by length
  std::int64_t state;      ///< [b h]: the hidden state, or its gradient
  std::int64_t cell;       ///< [b h]: likewise of the cell
  std::int64_t zeros;      ///< [h]: a row before the first step
  std::int64_t step;       ///< [b g h]: what is multiplied by the weight, or comes of it
  std::int64_t weight;     ///< [h g h]: bf16 calls: the weight in f32; of a gradient: it transposed
  std::int64_t end;

  /// `gates` is [b s g h], `weight` [h g h].
  RecurrentScratch(const TensorType& gates, const TensorType& weight_type, bool gradient) {
    const std::int64_t batch = gates.shape[0], width = gates.shape[3];
    state = order + aligned(batch);
    cell = state + aligned(batch * width);
    zeros = cell + aligned(batch * width);
    step = zeros + aligned(width);
    weight = step + aligned(batch * gates.shape[2] * width);
    end = weight + (gradient || weight_type.dtype != DType::f32 ? element_count(weight_type.shape) : 0);
  }

  std::int64_t bytes() const { return 4 * end; }

 private:
  static std::int64_t aligned(std::int64_t count) { return (count + 15) / 16 * 16; }
};

}  // namespace alpa
