#pragma once
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// [stage] The strategy of all that it sends; none: of each transfer the fastest.
using StageTransfers = Indexed<StageIndex, std::optional<TransferStrategy>>;

/// Gives each transfer of the plan its fastest way, of the strategy of the stage that makes the value where
/// it has one. What it takes alone on the network decides.
void choose_transfer_ways(Plan&, const Graph&, const CostModel&, const StageTransfers& only);

}  // namespace alpa
