#pragma once
#include <cstdint>

namespace alpa {

/// What an update takes besides its tensors, anew for every step; as InputKind::update_scalars it is f32[6],
/// in this order.
struct UpdateScalars {
  float learning_rate = 0;
  float bias_correction1 = 1;  ///< 1 - beta1^updates
  float bias_correction2 = 1;  ///< 1 - beta2^updates
  float per_micro_batch = 1;   ///< 1 / micro-batches
  float per_loss_scale = 1;    ///< 1 / loss scale
  float updates = 1;           ///< up to this one
  bool operator==(const UpdateScalars&) const = default;

  static constexpr std::int64_t kCount = 6;
};
static_assert(sizeof(UpdateScalars) == UpdateScalars::kCount * sizeof(float));

}  // namespace alpa
