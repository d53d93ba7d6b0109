#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "libalpa/graph/update_scalars.h"

namespace alpa {

/// What a step is fed on a rank; host memory that outlives the call.
struct StepInputs {
  /// Of each input of samples, in the graph's order, what the rank takes of it: Executor::samples(). GPUs
  /// copy it at full rate from memory of Device::allocate_staging().
  std::span<const std::span<const std::byte>> samples;
  float loss_scale = 1;  ///< as InputKind::loss_scale
  UpdateScalars update_scalars;
  std::int64_t step = 0;
  std::span<const std::int32_t> group_rows = {};  ///< RunPoint::group_rows
};

}  // namespace alpa
