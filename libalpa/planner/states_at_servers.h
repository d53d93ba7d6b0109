#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Where servers are to hold the states (PlannerOptions::staleness), the options for the plan that they can
/// do so for; else the same. Throws Error(usage) for what is given beside.
PlannerOptions for_states_at_servers(PlannerOptions);

/// Has them do so, and predicts the plan anew. Throws Error(usage) where they cannot.
void hold_states_at_servers(Plan&, const Graph&, const CostModel&, int staleness);

}  // namespace alpa
