#pragma once
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// Adds to the decisions of a stage what each holds at which ticks of a StageClock, beside what lasts: values
/// from when they are made or arrive to their last use in the segment, workspace, and both ends of each
/// conversion with what lies between. So the sum over the decisions at a tick is what the buffers of the
/// lowered program hold then, but for messages; with equal layers folded it is that of the first of them.
/// Messages, whose other ends are not known, have a bound of their own. What conversions hold is counted when
/// it is asked for: `stage` then refers to all that is given here.
void add_memory_over_time(const StageScope&, const StageRequest&, const MeshCosts&, StageVariables&);

}  // namespace alpa
