#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// Adds what copies of the states take that are updated before the norm (UpdateOrder::before_norm): memory
/// from the norm to the end of the update, and time. A step whose norm binds takes no more memory than that,
/// but for sums of gradients that do not lie as the update takes them where they rest all step (cut where
/// they were summed, received in the update, or made in it of those of a tied weight): those are kept for the
/// second update.
void add_copies_of_states(const StageScope&, const MeshCosts&, StageVariables&);

}  // namespace alpa
