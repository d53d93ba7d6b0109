#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Methods that are no search over both kinds of parallelism: "serial", "zero-1" ... (method_words()).
std::vector<std::string> baseline_names();

/// The pinned plans that a named method stands for on this many devices; several where it has free numbers
/// (Megatron's data x tensor x pipeline). Layers are cut by equal work. Empty where the method does not apply
/// (a batch that does not divide, fewer layers than stages).
std::vector<PinnedPlan> baseline_plans(const std::string& method, const Graph&, int devices,
                                       int devices_per_node, int micro_batches, const std::string& schedule);

}  // namespace alpa
