#pragma once
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Gives each transfer of the plan its fastest way, of that strategy where one is given. What a transfer
/// takes alone decides: others are on the network at other times, or take as much of it whichever way they
/// go.
void choose_transfer_ways(Plan&, const Graph&, const CostModel&, std::optional<TransferStrategy> only);

}  // namespace alpa
