#pragma once
#include <functional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Brings states that rest on the host back to the device, as many as there is room for on each mesh: as many
/// bytes of them as its arena leaves free. The plan has a prediction, which is brought up to date. Parameters
/// come first, which are moved for each micro-batch; of the others, what a state moves grows with what it
/// takes, so what saves most time in a room is what fills it best: a knapsack whose values are its weights,
/// filled with the largest that fit, which is the best for tiles of one size and half of it at least. What is
/// back is not staged any more, so there may be room for more: until nothing changes.
///
/// One way leaves no room, so that of what is moved the next comes where the last has been; others leave room
/// for that of one update more, or two, to be fetched ahead, and one is GeePS's (planner/geeps_placement).
/// The plan becomes the fastest of those that `fits` takes, by the simulator; of equally fast ones that with
/// the fewest states on the host; and before all that its hosts have the memory for it.
void return_states(Plan&, const Graph&, const CostModel&, const std::function<bool(const Plan&)>& fits);

/// By how much what rests on the host of a node exceeds what is there for it, of the node that lacks most; 0:
/// of none, as far as is known. Of a plan with a prediction.
std::int64_t host_shortfall(const Plan&);

}  // namespace alpa
