#pragma once
#include <filesystem>

#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Reads a pinned plan:
///
///     micro_batches = 4
///     schedule = "1f1b"          # or another of alpa-plan's --schedule; left out: what that says
///     overlap = "none"           # likewise of --overlap; the search beside the pin has the same
///     transfers = "auto"         # likewise of --transfers
///     updates = "after-norm"     # likewise of --updates, as overlap
///     owners = "none"            # likewise of --owners, as overlap
///     offload = "optimizer"      # likewise of --offload
///     [[stage]]
///     layers = 3                 # that many further layers of the model
///     mesh = [2, 2]              # devices along each axis; [] or [1]: one device
///     axes = ["data", "tensor"]  # what each axis does: free, data, tensor, sequence, ring or expert
///     state_sharding = "optimizer"  # over the data axes: free, none, optimizer, gradients or parameters
///     rematerialize = false      # compute all of its layers again in the backward
///     recomputed_layers = 2      # or its first ones only
///     recompute_form = "selective"  # of these layers what costs much is kept; full: only what enters them;
///                                   # offload: all, in the host's memory
///     transfers = "broadcast"    # of what this stage makes and others use; left out: that of all
///
/// Throws Error(input) with all faults of the file.
PinnedPlan read_pin(const std::filesystem::path&);
PinnedPlan parse_pin(std::string_view text, const std::string& file_name);

int device_count(const PinnedPlan&);

/// Throws Error(input) where the pinned stages do not cover the graph's layers, or take more devices than
/// there are.
void check_pin(const PinnedPlan&, const Graph&, int devices);

}  // namespace alpa
