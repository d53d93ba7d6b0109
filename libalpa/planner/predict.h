#pragma once
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Lowers, verifies and simulates a plan and puts the figures into its prediction, but for the deviation of
/// the step (candidates are left alone). Of many micro-batches those are verified after which the pipeline
/// repeats what it did; alpa-train verifies all that it runs.
void predict(Plan&, const Graph&, const CostModel&);

/// The same figures for comparisons, without the proof that the program is sound: of a step of many
/// micro-batches the first ones are simulated, and each further one takes what the last of those took, in
/// which the pipeline works steadily.
void predict_steady(Plan&, const Graph&, const CostModel&);

/// Of a step of so many, or fewer where the plan has no more, the last micro-batches are as those of the
/// plan.
int micro_batches_to_be_steady(const Plan&);

/// How far a predicted step is to be trusted (program/order/step_error.h).
struct Sureness {
  double error_s = 0;                     ///< its standard deviation
  std::optional<double> estimated_share;  ///< of the time of its operators, in [0, 1]
};

/// Of a step that is predicted to take that long; nothing where costs are not measured. Of many micro-batches
/// it is the same part of the step as of fewer, whose timeline fits into memory.
Sureness sureness(const Plan&, const Graph&, const CostModel&, double step_s);
/// Puts that of the predicted step into the prediction.
void predict_sureness(Plan&, const Graph&, const CostModel&);

}  // namespace alpa
