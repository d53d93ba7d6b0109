#pragma once
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/stage/stage_limits.h"

namespace alpa {

/// Throws Error(input) with all that the constraints of the options name and model and cluster have not, or
/// Error(usage) where other options say otherwise.
void check_constraints(const PlannerOptions&, const PlanningModel&, const Cluster&);

/// With what the constraints say of the schedule and of recomputation.
PlannerOptions within_constraints(PlannerOptions);

/// Numbers of micro-batches, ascending; empty: any.
std::vector<int> allowed_micro_batches(const PlanConstraints&);

/// Leaves in a space what the constraints allow. Its cuts are given.
void narrow(SearchSpace&, const PlanConstraints&, const Graph&);

/// What they say of tensors and operators.
StageLimits stage_limits(const PlanConstraints&, const Graph&);

/// One that these stages are against, however their tensors are split; null: none.
const PlanConstraint* against(const PlanConstraints&, const PinnedPlan&, const Graph&, const Cluster&);

/// Stages begin there: 0 and the number of layers among them. Both bounds of LayersTogether, in order.
int cut_of(const StageBoundary&, const Graph&);
std::pair<int, int> layers_of(const LayersTogether&, const Graph&);

}  // namespace alpa
