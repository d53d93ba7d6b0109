#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "libalpa/planner/plan_constraints.h"

namespace alpa {

/// Reads constraints (share/constraints.md):
///
///     most_tensor_parallel = 8     # devices
///     most_zero = 1                # ZeRO level: 0 to 3
///     stages = 4                   # or most_stages = 4
///     micro_batches = [16, 32]
///     recompute = "never"          # or "always", "selective"
///     schedule = "1f1b"            # or another of alpa-plan's --schedule
///     [[tensor]]
///     name = "block.*.mlp.up"      # parameters or activations; '*' stands for any characters
///     split = 1                    # dimension; or whole = true
///     [[boundary]]
///     after = "block.3"            # a layer; or before = "block.4"
///     [[together]]
///     layers = ["block.0", "block.3"]
///     [[apart]]
///     devices = [0, 8]             # of the cluster
///
/// Throws Error(input) with all faults of the file.
PlanConstraints read_constraints(const std::filesystem::path&);
PlanConstraints parse_constraints(std::string_view text, const std::string& file_name);

}  // namespace alpa
