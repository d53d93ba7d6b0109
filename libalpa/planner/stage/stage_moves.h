#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// States that rest in the host's memory: each is fetched before its first use in the update, and offloaded
/// when that has written it; parameters are fetched for the forward and the backward of each micro-batch too.
/// Meanwhile they are in the device's memory, and no longer. (What a parameter takes in a forward and a
/// backward is stage_memory's: StageScope::is_fetched.)
void add_moves_of_states(const StageScope&, const StageRequest&, const MeshCosts&, StageVariables&);

/// What a stage saves in the host's memory (RecomputeForm::offload): each is offloaded once it is made, and
/// fetched before its first use in the backward. Both take their time, as of lanes that take turns. (A
/// backward in two parts fetches what both take twice, which only the simulator knows.)
void add_moves_of_activations(const StageScope&, const StageRequest&, const MeshCosts&, StageVariables&);

}  // namespace alpa
