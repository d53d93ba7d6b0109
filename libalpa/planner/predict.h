#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Lowers, verifies and simulates a plan and puts the figures into its prediction (candidates are left
/// alone).
void predict(Plan&, const Graph&, const CostModel&);

}  // namespace alpa
