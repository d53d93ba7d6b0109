#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/changed_cluster.h"
#include "libalpa/report/priced_step.h"

namespace alpa {

/// A plan's step with that change of its cluster.
struct ChangedStep : PricedStep {
  ClusterChange change;
};

/// Simulates the plan as it is, which comes first, and with each of the changes, as it was made: its program
/// stays. The prices are those of `costs`, what they have measured extrapolated. Throws Error(usage) for a
/// device that is not known, Error(input) for one that does not compute in the model's type.
std::vector<ChangedStep> what_if(const Plan&, const Graph&, const CostModel& costs,
                                 const std::vector<ClusterChange>&);

/// Of one change: before -> after, for each stage. Of several: a line each.
std::string what_if_text(const std::vector<ChangedStep>&);

/// An object of each, with the terms of each mesh.
JsonArray what_if_json(const std::vector<ChangedStep>&);

}  // namespace alpa
