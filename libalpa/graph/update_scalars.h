#pragma once
#include <cstdint>

namespace alpa {

/// What an update takes besides its tensors, anew for every step; as InputKind::update_scalars it is f32[5],
/// in this order. t: the updates up to this one.
struct UpdateScalars {
  float learning_rate = 0;
  float bias_correction1 = 1;  ///< 1 - beta1^t
  float bias_correction2 = 1;  ///< 1 - beta2^t
  float per_micro_batch = 1;   ///< 1 / micro-batches
  float per_loss_scale = 1;    ///< 1 / loss scale
  bool operator==(const UpdateScalars&) const = default;

  static constexpr std::int64_t kCount = 5;
};
static_assert(sizeof(UpdateScalars) == UpdateScalars::kCount * sizeof(float));

}  // namespace alpa
