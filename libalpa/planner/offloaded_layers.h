#pragma once
#include <functional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Of how many layers stages have activations on the host, where any do: what a stage saves, and how it is
/// split, stays as it is wherever that rests. First as few as each mesh has to have for its memory. Where
/// moves go on beside the computation, then 1, 2, 4 ... more in each such stage, up to all: what that frees
/// is room for a double buffer, to fetch into ahead of use and to compute in while what came before is on its
/// way out. The plan, which has a prediction, becomes the fastest of these by the simulator that `fits`
/// takes.
void choose_offloaded_layers(Plan&, const Graph&, const CostModel&,
                             const std::function<bool(const Plan&)>& fits);

}  // namespace alpa
