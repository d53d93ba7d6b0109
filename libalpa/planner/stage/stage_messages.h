#pragma once
#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// Adds to the decisions of a stage a bound on what its messages to and from other stages hold at which
/// ticks, known before those are (StageVariable::messages). Never exceeded by the lowered program.
void add_message_memory(const StageScope&, const StageRequest&, const MeshCosts&, const StageClock&,
                        StageVariables&);

}  // namespace alpa
