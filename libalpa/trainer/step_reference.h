#pragma once
#include <optional>
#include <string>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/graph.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What the steps of a run are held against in their metrics, the same for all of them.
struct StepReference {
  double flops = 0;                        ///< of the model, in a step: recomputation is not counted
  std::optional<double> predicted_step_s;  ///< by the plan; nullopt where it has no prediction
  std::optional<double> peak_flops_per_s;  ///< of all devices, dense; nullopt where unknown
  /// "data sheet" (of a GPU that is known), "measured" (by alpa-profile: what products attain), "table"
  /// (cluster file, likewise) or "unknown".
  std::string peak_origin = "unknown";
};

/// Of a model that computes in `type` on devices of which this rank's describes itself so; "": emulated,
/// which have no peak. Where no data sheet is known that of the plan's cluster counts, if the job runs on it.
StepReference step_reference(const Plan&, const Graph&, DType type, const std::string& device,
                             bool runs_on_planned_cluster);

}  // namespace alpa
