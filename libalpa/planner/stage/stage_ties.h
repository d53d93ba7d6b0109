#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// What limits ask of layouts together; `built`: with all its variables. They keep the training state to the
/// ZeRO level: a parameter rests split along no axis along which an operator of the forward or the backward
/// takes it whole (level 2 or less); sums of gradients are split along no axis along which the parameter is
/// not (1 or less), and neither are the optimizer's states (0). And they keep gradients to the ways of the
/// limits (way_rules).
std::vector<StageTie> limit_ties(const StageScope&, const MeshCosts&, const StageVariables& built);

}  // namespace alpa
