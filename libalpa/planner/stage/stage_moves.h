#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// States that rest in the host's memory: each is fetched before its first use in the update, and offloaded
/// when that has written it. Meanwhile it is in the device's memory, and no longer.
void add_moves_of_states(const StageScope&, const MeshCosts&, StageVariables&);

}  // namespace alpa
