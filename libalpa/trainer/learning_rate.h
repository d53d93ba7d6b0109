#pragma once
#include <cstdint>
#include <string>

#include "libalpa/checkpoint/loss_scale.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/graph/update_scalars.h"

namespace alpa {

/// The learning rate of step `step`, from 0 on: it rises in equal parts over the warm-up, whose last step has
/// (with warmup_steps = 4: 1/4, 2/4, 3/4, 4/4 of) the peak, stays there until decay_steps are left
/// (0: for no step more), then follows the schedule, whose last step, `steps` - 1, and all after it have
/// final_learning_rate x the peak.
double learning_rate(const TrainingOptions&, std::int64_t step);

/// How it goes, in words: "rises to 0.0003 in 100 steps, falls to 3e-05 by step 1000 (cosine)"; a peak that
/// no model file may have set is called the default.
std::string learning_rate_text(const TrainingOptions&);

/// What a run of `steps` steps is to be warned of: the steps after the schedule's last one train at what is
/// left of the learning rate then. "" where there are none, or the rate is constant.
std::string ended_schedule_text(const TrainingOptions&, std::int64_t steps);

/// Those of step `step`; updates that were skipped do not count.
UpdateScalars update_scalars(const TrainingOptions&, std::int64_t step, std::int64_t micro_batches,
                             const LossScale&);

}  // namespace alpa
