#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/checkpoint/loss_scale.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/metrics.h"
#include "libalpa/trainer/read_ahead.h"

namespace alpa {

/// Feeds an executor with data, step by step, and returns what came out. All ranks call it alike.
class StepRunner {
 public:
  /// Keeps references; both readers may be the same. Program 0 of the executor trains, program 1 evaluates.
  StepRunner(const Graph& graph, Executor& executor, BatchReader& training, BatchReader& held_out,
             const TrainingOptions& options);

  /// The step after `steps_done` steps, on the samples from `first_sample` on; those from `next` on, of the
  /// step after it, are read meanwhile. Throws Error(non_finite) where the loss or the gradient's norm is,
  /// and no smaller loss scale can help, and what reading the samples throws. Sets what is known of the step
  /// alone: no FLOPs, peak or memory. Where a step is known in the next (Executor::run), it is returned then,
  /// and by finish() at the end; a loss that is not finite is thrown as late.
  std::optional<StepMetrics> train(std::int64_t steps_done, std::int64_t first_sample,
                                   std::optional<std::int64_t> next = std::nullopt);

  /// The oldest step that is not known yet; nullopt: all are, and states are those after the last. To be
  /// called until then before these are read, and before evaluate().
  std::optional<StepMetrics> finish();
  bool knows_all_steps() const { return executor_.knows_all_steps(); }

  double last_step_s() const { return last_step_s_; }      ///< what the last step took, known or not
  double uncorrected_s() const { return uncorrected_s_; }  ///< likewise, without StepMetrics::correction_s

  /// As the last step left it, or to go on from; nullopt where the precision needs none.
  std::optional<LossScale> loss_scale() const;
  void set_loss_scale(const LossScale& scale) { scale_ = scale; }

  /// Over at most so many batches of held-out data; nullopt where there is none. Metrics that are reported
  /// per step are means over these batches.
  std::optional<Evaluation> evaluate(std::int64_t steps_done, std::int64_t most_batches);

 private:
  std::optional<StepMetrics> known(const std::optional<StepResult>&);

  const Graph& graph_;
  Executor& executor_;
  BatchReader &training_, &held_out_;
  const TrainingOptions& options_;
  LossScale scale_;
  struct BegunStep {
    StepMetrics metrics;
    double targets = 0;
  };
  std::vector<BegunStep> begun_;       ///< [step, in turn] whose losses are not known yet
  std::vector<NamedNumber> of_model_;  ///< of the last step
  bool is_first_ = true;
  double last_step_s_ = 0, uncorrected_s_ = 0;
  std::int64_t corrected_steps_ = 0;  ///< so far, of this run
  std::int64_t tokens_ = 0;           ///< of a sample; 0 where samples are no tokens
  std::vector<std::int32_t> group_rows_;
  ReadAhead samples_;
};

}  // namespace alpa
