#include "libalpa/trainer/step_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "libalpa/base/error.h"
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
      of_model_(metrics()),
      samples_(executor.device(), executor.samples(), training) {
  for (const Input& input : graph.inputs)
    if (input.kind == InputKind::tokens) tokens_ = options.sequence;
}

double StepRunner::target_count(Split split, std::int64_t first_sample) const {
  return static_cast<double>(reader(split).target_count(split, first_sample, options_.batch));
}

std::span<const std::int32_t> StepRunner::group_rows(Split split, std::int64_t first_sample) {
  reader(split).count_group_rows(split, first_sample, options_.batch, group_rows_);
  return group_rows_;
}

std::vector<NamedNumber> StepRunner::metrics() const {
  std::vector<NamedNumber> numbers;
  for (const Metric& metric : graph_.metrics) numbers.push_back({metric.name, 0});
  return numbers;
}

void StepRunner::add_metrics(const StepResult& result, std::vector<NamedNumber>& to) const {
  for (std::size_t m = 0; m < to.size(); ++m) to[m].value += result.metric_sums[m];
}

void StepRunner::make_means(double targets, double steps, std::vector<NamedNumber>& sums) const {
  for (std::size_t m = 0; m < sums.size(); ++m)
    sums[m].value /= graph_.metrics[m].per_target ? targets : steps;
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
  const double targets = target_count(Split::training, first_sample);
  inputs.loss_scale = static_cast<float>(scale_.factor / targets);
  inputs.update_scalars = update_scalars(options_, steps_done, options_.batch / graph_.samples, scale_);
  inputs.step = steps_done;
  inputs.group_rows = group_rows(Split::training, first_sample);
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
  make_means(targets, 1, of_model_);
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
  const std::int64_t whole_batches = held_out_.order().windows(Split::held_out) / options_.batch;
  const std::int64_t batches = std::min(most_batches, whole_batches);
  if (batches == 0) return std::nullopt;
  Evaluation evaluation{0, metrics()};
  double targets = 0;
  for (std::int64_t b = 0; b < batches; ++b) {
    StepInputs inputs;
    inputs.samples = samples_.read(held_out_, Split::held_out, b * options_.batch);
    inputs.step = steps_done;
    inputs.group_rows = group_rows(Split::held_out, b * options_.batch);
    const StepResult result = *executor_.run(inputs, 1);
    evaluation.loss += result.loss_sum;
    add_metrics(result, evaluation.of_model);
    targets += target_count(Split::held_out, b * options_.batch);
  }
  evaluation.loss /= targets;
  make_means(targets, static_cast<double>(batches), evaluation.of_model);
  return evaluation;
}

}  // namespace alpa
