#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"

namespace alpa {

/// What is looked at where `asked` is a schedule, or kAnySchedule: then all that differ for so many stages.
/// Stages are searched for under the first of them, which holds the fewest micro-batches.
std::vector<std::string> schedules_of(const std::string& asked, int stages, int micro_batches);
std::string first_schedule(const std::string& asked);
/// Those that differ for some number of stages.
std::vector<std::string> schedules_of(const std::string& asked);

/// A bound on such a pipeline under each of them.
double least_pipeline_s(const std::vector<StageFloor>&, const std::string& asked, int micro_batches);

}  // namespace alpa
