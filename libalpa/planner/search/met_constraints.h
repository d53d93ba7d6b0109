#pragma once
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/plan_constraints.h"

namespace alpa {

/// The constraints that a plan does not meet, by what the plan says alone: how it was found makes no
/// difference. Its names must be those of the graph.
std::vector<const PlanConstraint*> unmet_constraints(const PlanConstraints&, const Plan&, const Graph&);

/// Throws Error(input) where one is not met.
void require_met(const PlanConstraints&, const Plan&, const Graph&);

}  // namespace alpa
