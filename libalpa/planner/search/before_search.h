#pragma once
#include <vector>

#include "libalpa/planner/planner_options.h"

namespace alpa {

/// States and sums of gradients are somewhere, whatever the plan: throws Error(infeasible) where so many
/// devices have no room for them.
void refuse_what_cannot_fit(const Graph&, const PlannerOptions&, const Cluster&, int devices);

/// Throws Error(usage) where the batch does not divide into so many micro-batches.
void check_batch(const PlanningModel&, int micro_batches);

/// The numbers of micro-batches to plan for, ascending: those that the options or constraints ask for, or all
/// that the batch divides into and that a profile may have measured. Throws Error(input) where a batch is no
/// whole number of groups of samples, and as check_batch.
std::vector<int> planned_micro_batches(const PlanningModel&, const PlannerOptions&, const CostModel&,
                                       int devices);

}  // namespace alpa
