#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"

namespace alpa {

/// What is looked at where `asked` is a schedule, or kAnySchedule: then all that differ for so many stages.
/// Stages are searched for under the first of them, which holds the fewest micro-batches.
std::vector<std::string> schedules_of(const std::string& asked, int stages, int micro_batches);
std::string first_schedule(const std::string& asked);

/// What a bound goes by that holds under each of them, however many stages there are.
PipelineForm bounding_form(const std::string& asked, int micro_batches, int most_stages);

}  // namespace alpa
