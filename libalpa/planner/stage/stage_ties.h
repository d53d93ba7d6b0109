#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// What keeps the training state to the ZeRO level of the limits; `built`: with all its variables. A
/// parameter rests split along no axis along which an operator of the forward or the backward takes it whole
/// (level 2 or less); sums of gradients are split along no axis along which the parameter is not (1 or less),
/// and neither are the optimizer's states (0).
std::vector<StageTie> state_sharding_ties(const StageScope&, const MeshCosts&, const StageVariables& built);

}  // namespace alpa
