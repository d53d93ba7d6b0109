#pragma once
#include "tests/commands/timed_runs.h"

namespace alpa {

/// What a step of published networks takes under each preset, and as the planner would have it, by the
/// prediction; holds the planner's own choice to the best preset. `within`: 1.05 where it may take 5 %
/// longer.
void hold_own_choice_to_presets(double within, HeldTargets&);

/// The same of some of them, for nodes that are joined at 2 to 40 Gbit/s. `plot_file`: an SVG image to write;
/// "": none.
void sweep_bandwidth(double within, const std::string& plot_file, HeldTargets&);

/// Steps of 1 to 32 nodes, predicted, beside those that Poseidon's authors measured. Theirs with factors have
/// next to no communication left, so that the prediction may be off by `near` of them. What their parameter
/// server takes where it is not hidden, with copies between GPU and host and sums in software, no formula of
/// bytes says.
void hold_steps_to_published(double near, HeldTargets&);

}  // namespace alpa
