#include "libalpa/trainer/evaluated_batches.h"

namespace alpa {

std::vector<NamedNumber> no_metrics(const Graph& graph) {
  std::vector<NamedNumber> numbers;
  for (const Metric& metric : graph.metrics) numbers.push_back({metric.name, 0});
  return numbers;
}

void add_metrics(const StepResult& result, std::vector<NamedNumber>& to) {
  for (std::size_t m = 0; m < to.size(); ++m) to[m].value += result.metric_sums[m];
}

void make_means(const Graph& graph, double targets, double steps, std::vector<NamedNumber>& sums) {
  for (std::size_t m = 0; m < sums.size(); ++m)
    sums[m].value /= graph.metrics[m].per_target ? targets : steps;
}

EvaluatedBatches::EvaluatedBatches(const Graph& graph, Executor& executor, std::size_t program,
                                   ReadAhead& samples, BatchReader& reader, const TrainingOptions& options)
    : graph_(graph),
      executor_(executor),
      program_(program),
      samples_(samples),
      reader_(reader),
      batch_(options.batch),
      sums_{0, no_metrics(graph)} {}

std::int64_t EvaluatedBatches::all() const { return reader_.order().windows(Split::held_out) / batch_; }

void EvaluatedBatches::add(std::int64_t steps_done) {
  const std::int64_t first_sample = done_ * batch_;
  StepInputs inputs;
  inputs.samples = samples_.read(reader_, Split::held_out, first_sample);
  inputs.step = steps_done;
  reader_.count_group_rows(Split::held_out, first_sample, batch_, group_rows_);
  inputs.group_rows = group_rows_;
  const StepResult result = *executor_.run(inputs, program_);
  sums_.loss += result.loss_sum;
  add_metrics(result, sums_.of_model);
  targets_ += static_cast<double>(reader_.target_count(Split::held_out, first_sample, batch_));
  ++done_;
}

Evaluation EvaluatedBatches::mean() const {
  Evaluation mean = sums_;
  mean.loss /= targets_;
  make_means(graph_, targets_, static_cast<double>(done_), mean.of_model);
  return mean;
}

}  // namespace alpa
