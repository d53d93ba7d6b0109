#pragma once
#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// Adds to the decisions of a stage what is paid once a step: the loss and the metrics of this stage are
/// added up, what it has none of starts as zero. The squares of gradients are a third such sum.
void add_sums_of_step(const StageScope&, const MeshCosts&, StageVariables&);

/// What the kernels want that add up the loss and the metrics.
void add_workspace_of_sums(const StageScope&, const MeshCosts&, const StageClock&, StageVariables&);

}  // namespace alpa
