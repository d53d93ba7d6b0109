#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "libalpa/graph/update_scalars.h"

namespace alpa {

/// What a step is fed. Samples of the whole step, the same on every rank; host memory that outlives the call.
struct StepInputs {
  /// Of each input of samples, in the graph's order: the whole batch, a row per sample.
  std::span<const std::span<const std::byte>> samples;
  float loss_scale = 1;  ///< as InputKind::loss_scale
  UpdateScalars update_scalars;
  std::int64_t step = 0;
};

}  // namespace alpa
