#pragma once
#include "libalpa/base/log.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Whether these options fit each other and the cluster, as make_plan() begins. Throws Error(usage).
void check_options(const CostModel&, const PlannerOptions&);

/// The fastest plan that fits, by the simulator, among those the search and the baselines propose. Pure: the
/// same arguments give the same plan. Throws Error(infeasible) naming the stage and what it lacks,
/// Error(usage) for a method it does not know, and for what is said beside a pin that says it itself,
/// Error(stopped_early) where a stop was asked for before there was a plan.
Plan make_plan(const PlanningModel&, const CostModel&, const PlannerOptions&, Log&);

}  // namespace alpa
