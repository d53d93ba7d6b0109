#pragma once
#include <functional>
#include <string>

#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Where no plan fits: the least change of an option with which one does, or else of several, as the user
/// would give it ("--devices 8, or --micro-batches 64: ..."); "" where none is found soon. A step has so many
/// groups of samples, which micro-batches leave whole; `fits` says whether there is a plan.
std::string feasible_options(std::int64_t groups, int cluster_devices, const PlannerOptions&,
                             const std::function<bool(const PlannerOptions&)>& fits);

}  // namespace alpa
