#include "libalpa/checkpoint/loss_scale.h"

#include <algorithm>

namespace alpa {

LossScale first_loss_scale(const TrainingOptions& options) {
  return {options.precision == Precision::f16 ? options.loss_scale : 1};
}

LossScale next_loss_scale(const LossScale& scale, bool is_finite, const TrainingOptions& options) {
  if (options.precision != Precision::f16) return scale;
  if (!is_finite) return {std::max(scale.factor / 2, 1.0), 0, scale.skipped_steps + 1};
  if (scale.good_steps + 1 < options.loss_scale_steps)
    return {scale.factor, scale.good_steps + 1, scale.skipped_steps};
  return {2 * scale.factor, 0, scale.skipped_steps};
}

}  // namespace alpa
