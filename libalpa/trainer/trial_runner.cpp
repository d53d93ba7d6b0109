#include "libalpa/trainer/trial_runner.h"

#include <algorithm>
#include <array>

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/trainer/run_memory.h"
#include "libalpa/trainer/step_runner.h"

namespace alpa {
namespace {

double quantile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5)];
}

/// [step] of the rank that took longest.
std::vector<double> slowest_of_ranks(Communicator& control, Stream& stream, const std::vector<double>& own) {
  std::vector<double> all(own.size() * static_cast<std::size_t>(control.size())), slowest = own;
  control.all_gather(stream, own.data(), all.data(), own.size() * sizeof(double));
  for (std::size_t i = 0; i < all.size(); ++i)
    slowest[i % own.size()] = std::max(slowest[i % own.size()], all[i]);
  return slowest;
}

}  // namespace

void describe(TrialSettings& s, OptionsVisitor& visit) {
  visit.field("warm_up_steps", s.warm_up_steps, "steps of a trial before those that are timed",
              between(0, 1000));
  visit.field("timed_steps", s.timed_steps, "steps of a trial that are timed; their median counts",
              between(1, 10'000));
}

TrialRunner::TrialRunner(const Graph& graph, const TrainingOptions& options, const TrialSettings& settings,
                         const TrainRanks& ranks)
    : graph_(graph),
      options_(options),
      settings_(settings),
      ranks_(ranks),
      control_stream_(ranks.host.make_stream()),
      data_(open_training_data(settings.data, graph, options, SampleOrder::usual_held_out, settings.graphs)) {
}

/// "" where all ranks have the memory; else on all of them what is missing.
std::string TrialRunner::shortfall(const Program& training, const Program& evaluation) const {
  const Program* const programs[] = {&training, &evaluation};
  try {
    return check_memory(training, graph_, rank_memory(graph_, programs, *data_.reader, *data_.reader), ranks_,
                        TrainSettings(), *control_stream_)
        .shortfall;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::allocation) throw;
    return error.happened();
  }
}

TimedSteps TrialRunner::run(const Plan& plan) {
  const bool is_emulated = ranks_.costs != nullptr;
  const DeviceKind kernels = is_emulated ? plan.cluster.kind : ranks_.device.kind();
  const Program training = lower(graph_, plan, Purpose::train, kernels);
  verify(training);
  TimedSteps timed;
  timed.fault = shortfall(training, lower(graph_, plan, Purpose::evaluate, kernels));
  if (!timed.fault.empty()) return timed;
  Executor executor(graph_, {&training}, ranks_.device, ranks_.data_plane,
                    static_cast<std::uint64_t>(options_.seed), ranks_.costs);
  if (!is_emulated) initialize_states(executor, graph_, options_.seed);
  StepRunner steps(graph_, executor, *data_.reader, *data_.reader, options_);
  std::vector<double> seconds;
  std::optional<StepMetrics> last;
  const std::int64_t count = settings_.warm_up_steps + settings_.timed_steps;
  ranks_.control.barrier();
  for (std::int64_t step = 0; step < count; ++step) {
    const std::int64_t next = (step + 1) * options_.batch;
    last = steps.train(step, step * options_.batch, step + 1 < count ? std::optional(next) : std::nullopt);
    if (step >= settings_.warm_up_steps) seconds.push_back(steps.last_step_s());
  }
  while (!steps.knows_all_steps()) last = steps.finish();
  if (!is_emulated && last) timed.loss = last->loss;
  std::vector<double> slowest = slowest_of_ranks(ranks_.control, *control_stream_, seconds);
  std::ranges::sort(slowest);
  timed.median_s = quantile(slowest, 0.5);
  timed.spread_s = quantile(slowest, 0.75) - quantile(slowest, 0.25);
  return timed;
}

}  // namespace alpa
