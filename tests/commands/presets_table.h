#pragma once
#include "tests/commands/timed_runs.h"

namespace alpa {

/// What a step of published networks takes under each preset, and as the planner would have it, by the
/// prediction; holds the planner's own choice to the best preset. `within`: 1.05 where it may take 5 %
/// longer.
void hold_own_choice_to_presets(double within, HeldTargets&);

}  // namespace alpa
