#pragma once
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Gives each transfer of the plan its fastest way, of that strategy where one is given. What it takes alone on
/// the network decides.
void choose_transfer_ways(Plan&, const Graph&, const CostModel&, std::optional<TransferStrategy> only);

}  // namespace alpa
