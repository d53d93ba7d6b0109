#pragma once
#include <cstdint>
#include <string>

#include "libalpa/graph/training_options.h"
#include "libalpa/plan/plan.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/trainer/training_data.h"

namespace alpa {

class OptionsVisitor;

/// How plans are timed.
struct TrialSettings {
  std::string data;       ///< see open_tokens()
  GraphBatching graphs;   ///< of a model over graphs
  int warm_up_steps = 3;  ///< that are not timed
  int timed_steps = 20;
};
void describe(TrialSettings&, OptionsVisitor&);

/// What a plan took.
struct TimedSteps {
  std::string fault;                  ///< why it was not run; ""
  double median_s = 0, spread_s = 0;  ///< of the slowest rank of each step; interquartile range
  std::optional<double> loss;         ///< of the last step; emulated devices have none
};

/// Times plans of one graph on the ranks of a job, one after another, each from the initial states and on the
/// same samples. All ranks call it alike. Each plan has its own arena, which is given back before that of the
/// next.
class TrialRunner {
 public:
  /// Keeps references. Throws Error(input) for the data.
  TrialRunner(const Graph&, const TrainingOptions&, const TrialSettings&, const TrainRanks&);

  /// Throws Error(non_finite) where the loss is, on all ranks.
  TimedSteps run(const Plan&);

 private:
  std::string shortfall(const Program&, const Program&) const;

  const Graph& graph_;
  const TrainingOptions& options_;
  const TrialSettings& settings_;
  const TrainRanks& ranks_;
  std::unique_ptr<Stream> control_stream_;
  TrainingData data_;
};

}  // namespace alpa
