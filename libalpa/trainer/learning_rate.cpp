#include "libalpa/trainer/learning_rate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "libalpa/base/units.h"

namespace alpa {
namespace {

// 1 - beta^t without the cancellation that a beta near 1 brings.
double bias_correction(double beta, std::int64_t t) {
  return -std::expm1(static_cast<double>(t) * std::log(beta));
}

// What is left of the way from the peak to the final rate, after `progress` in [0, 1] of the schedule.
double remainder(LearningRateSchedule schedule, double progress) {
  switch (schedule) {
    case LearningRateSchedule::constant:
      return 1;
    case LearningRateSchedule::linear:
      return 1 - progress;
    case LearningRateSchedule::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  return 1;
}

}  // namespace

double learning_rate(const TrainingOptions& options, std::int64_t step) {
  if (step < options.warmup_steps)
    return options.learning_rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  std::int64_t first = std::max<std::int64_t>(options.warmup_steps - 1, 0);  // at the peak
  const std::int64_t last = std::max(options.steps - 1, first + 1);
  if (options.decay_steps > 0) first = std::max(first, last - options.decay_steps);
  const double progress = static_cast<double>(step - first) / static_cast<double>(last - first);
  const double left = remainder(options.schedule, std::clamp(progress, 0.0, 1.0));
  return options.learning_rate * (options.final_learning_rate + (1 - options.final_learning_rate) * left);
}

std::string learning_rate_text(const TrainingOptions& options) {
  const std::string peak =
      fmt::format("{:.3g}{}", options.learning_rate,
                  options.learning_rate == TrainingOptions{}.learning_rate ? " (the default)" : "");
  if (options.warmup_steps >= options.steps)
    return fmt::format("rises to {:.3g} by step {}, within a warm-up of {} to {}",
                       learning_rate(options, options.steps - 1), options.steps,
                       count_text(options.warmup_steps, "step"), peak);
  std::string text = options.warmup_steps > 0
                         ? fmt::format("rises to {} in {}", peak, count_text(options.warmup_steps, "step"))
                         : peak;
  if (options.schedule == LearningRateSchedule::constant)
    return text + (options.warmup_steps > 0 ? ", stays there" : " at every step");
  text += options.decay_steps > 0
              ? fmt::format(", in the last {} falls", count_text(options.decay_steps, "step"))
              : ", falls";
  return text + fmt::format(" to {:.3g} by step {} ({})", learning_rate(options, options.steps - 1),
                            options.steps,
                            options.schedule == LearningRateSchedule::cosine ? "cosine" : "linear");
}

std::string ended_schedule_text(const TrainingOptions& options, std::int64_t steps) {
  if (steps <= options.steps || options.schedule == LearningRateSchedule::constant) return "";
  return fmt::format(
      "the learning rate stays at {:.3g} from step {} on: its schedule ends there ([training] steps), the "
      "run at step {} (--steps)",
      learning_rate(options, options.steps - 1), options.steps, steps);
}

UpdateScalars update_scalars(const TrainingOptions& options, std::int64_t step, std::int64_t micro_batches,
                             const LossScale& scale) {
  const std::int64_t t = step + 1 - scale.skipped_steps;
  return {static_cast<float>(learning_rate(options, step)),
          static_cast<float>(bias_correction(options.beta1, t)),
          static_cast<float>(bias_correction(options.beta2, t)),
          1.0f / static_cast<float>(micro_batches),
          static_cast<float>(1 / scale.factor),
          static_cast<float>(t)};
}

}  // namespace alpa
