#include "libalpa/trainer/step_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/trainer/evaluated_batches.h"
#include "libalpa/trainer/learning_rate.h"

namespace alpa {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

StepRunner::StepRunner(const Graph& graph, Executor& executor, BatchReader& training, BatchReader& held_out,
                       const TrainingOptions& options)
    : graph_(graph),
      executor_(executor),
      training_(training),
      held_out_(held_out),
      options_(options),
      scale_(first_loss_scale(options)),
      begun_(static_cast<std::size_t>(executor.most_unknown_steps() + 1)),
      of_model_(no_metrics(graph)),
      samples_(executor.device(), executor.samples(), training) {
  for (const Input& input : graph.inputs)
    if (input.kind == InputKind::tokens) tokens_ = options.sequence;
}

std::optional<LossScale> StepRunner::loss_scale() const {
  return options_.precision == Precision::f16 ? std::optional(scale_) : std::nullopt;
}

std::optional<StepMetrics> StepRunner::train(std::int64_t steps_done, std::int64_t first_sample,
                                             std::optional<std::int64_t> next) {
  const Stopwatch watch;
  StepMetrics m;
  m.first_of_job = std::exchange(is_first_, false);
  StepInputs inputs;
  inputs.samples = in_step([&] { return fmt::format("reading the samples of step {}", steps_done + 1); },
                           [&] { return samples_.training(first_sample, next); });
  m.data_s = watch.seconds();
  const auto targets =
      static_cast<double>(training_.target_count(Split::training, first_sample, options_.batch));
  inputs.loss_scale = static_cast<float>(scale_.factor / targets);
  inputs.update_scalars = update_scalars(options_, steps_done, options_.batch / graph_.samples, scale_);
  inputs.step = steps_done;
  training_.count_group_rows(Split::training, first_sample, options_.batch, group_rows_);
  inputs.group_rows = group_rows_;
  const std::optional<StepResult> result = executor_.run(inputs);
  m.step = steps_done + 1;
  m.learning_rate = learning_rate(options_, steps_done);
  m.samples = options_.batch;
  m.tokens = options_.batch * tokens_;
  m.samples_hash = training_.order().samples_hash(first_sample, options_.batch);
  m.step_s = last_step_s_ = watch.seconds();
  uncorrected_s_ = last_step_s_ - (result ? result->correction_s : 0);
  begun_[static_cast<std::size_t>(steps_done % std::ssize(begun_))] = {std::move(m), targets};
  return known(result);
}

std::optional<StepMetrics> StepRunner::finish() { return known(executor_.finish()); }

/// What is known of a step once its loss is.
std::optional<StepMetrics> StepRunner::known(const std::optional<StepResult>& result) {
  if (!result) return std::nullopt;
  auto [m, targets] = std::move(begun_[static_cast<std::size_t>(result->step % std::ssize(begun_))]);
  m.loss = result->loss_sum / targets;
  m.gradient_norm = result->gradient_norm / scale_.factor;
  for (NamedNumber& metric : of_model_) metric.value = 0;
  add_metrics(*result, of_model_);
  make_means(graph_, targets, 1, of_model_);
  m.of_model = of_model_;
  m.correction_s = result->correction_s;
  m.lead = result->lead;
  const bool is_finite = std::isfinite(m.gradient_norm);
  if (!std::isfinite(m.loss) || (!is_finite && scale_.factor <= 1)) {
    while (executor_.finish()) {
    }  // so that nothing is under way any more
    throw Error(ErrorKind::non_finite,
                fmt::format("step {}: loss {}, gradient norm {}", m.step, m.loss, m.gradient_norm),
                "a lower learning rate or a longer warm-up; checkpoints hold earlier steps alone");
  }
  if (options_.precision == Precision::f16) m.loss_scale = scale_.factor;
  scale_ = next_loss_scale(scale_, is_finite, options_);
  m.skipped_steps = scale_.skipped_steps;
  m.corrected_steps = corrected_steps_ += result->correction_s > 0 ? 1 : 0;
  return m;
}

std::optional<Evaluation> StepRunner::evaluate(std::int64_t steps_done, std::int64_t most_batches) {
  EvaluatedBatches batches(graph_, executor_, 1, samples_, held_out_, options_);
  const std::int64_t count = std::min(most_batches, batches.all());
  if (count == 0) return std::nullopt;
  while (batches.done() < count) batches.add(steps_done);
  return batches.mean();
}

}  // namespace alpa
