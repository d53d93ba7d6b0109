#pragma once
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Sets of states that may rest on the host in place of the plan's, which has some there: those are back on
/// the device of which there is room for, on each mesh as many bytes of them as its arena leaves free. What a
/// state moves grows with what it takes, so what saves most time in a room is what fills it best: a knapsack
/// whose values are its weights, filled with the largest that fit, which is the best for tiles of one size
/// and half of it at least. What is back is not staged any more, so there may be room for more: until nothing
/// changes.
///
/// The first leaves no room, so that of what is moved the next comes where the last has been; others leave
/// room for that of one update more, or two, to be fetched ahead (GeePS, EuroSys'16, leaves a double buffer
/// always). Which is fastest, the simulator knows. Of plans that fit; all of these do.
std::vector<std::vector<ValueIndex>> fewer_on_host(const Plan&, const Graph&, const CostModel&);

/// By how much what rests on the host of a node exceeds what is there for it, of the node that lacks most; 0:
/// of none, as far as is known. Of a plan with a prediction.
std::int64_t host_shortfall(const Plan&);

}  // namespace alpa
