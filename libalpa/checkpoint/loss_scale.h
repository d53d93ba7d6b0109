#pragma once
#include <cstdint>

#include "libalpa/graph/training_options.h"

namespace alpa {

/// Dynamic loss scaling (Micikevicius et al., Mixed Precision Training, ICLR'18): gradients of f16 would lose
/// what is below 2^-24, so backward is seeded with `factor` times as much, and updates divide it away. State
/// of the training run, the same on every rank.
struct LossScale {
  double factor = 1;
  std::int64_t good_steps = 0;     ///< without overflow, since the factor last changed
  std::int64_t skipped_steps = 0;  ///< of the whole run: their gradients overflowed
  bool operator==(const LossScale&) const = default;
};

/// At the start of a run; of precisions other than f16 it is 1, and stays so.
LossScale first_loss_scale(const TrainingOptions&);

/// After a step whose gradients were all finite, or not: doubled after `loss_scale_steps` good steps, halved
/// at once but never below 1.
LossScale next_loss_scale(const LossScale&, bool is_finite, const TrainingOptions&);

}  // namespace alpa
