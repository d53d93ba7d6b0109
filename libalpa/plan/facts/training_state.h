#pragma once
#include <functional>

#include "libalpa/plan/placement.h"

namespace alpa {

/// Calls `take(parameter, value, is_state)` for each tensor of a parameter's extents that its update on this
/// stage takes beside it: states of the optimizer (moments, master weights), and sums of gradients.
void for_each_training_state(
    const Placement&, StageIndex,
    const std::function<void(const State& parameter, ValueIndex, bool is_state)>& take);

}  // namespace alpa
