#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// The states that rest on the host once those are back on the device of which there is room for: on each
/// mesh as many bytes of them as its arena leaves free. What a state moves grows with what it takes, so what
/// saves most time in that room is what fills it best: a knapsack whose values are its weights, filled with
/// the largest that fit, which is the best for tiles of one size and half of it at least. (GeePS, EuroSys'16,
/// goes by its order of use.) What is back is not staged any more, so there may be room for more: until
/// nothing changes. Of plans with a prediction; the result fits where the plan does.
std::vector<ValueIndex> least_on_host(const Plan&, const Graph&, const CostModel&);

}  // namespace alpa
