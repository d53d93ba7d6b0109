#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/pipeline_bound.h"

namespace alpa {

/// What is looked at where `asked` is a schedule, or kAnySchedule: then all that differ for so many stages.
/// None where the schedule does not take so many on a mesh.
std::vector<std::string> schedules_of(const std::string& asked, int stages, int stages_per_mesh,
                                      int micro_batches);
/// Such stages are searched for under the first of them; of those with meshes of their own it holds the
/// fewest micro-batches, and is "1f1b" where only others are asked for.
std::string first_schedule(const std::string& asked, int stages_per_mesh = 1);
/// Those that differ for some number of stages with meshes of their own.
std::vector<std::string> schedules_of(const std::string& asked);
/// Whether a plan may have so many stages on a mesh.
bool may_have(const std::string& asked, int stages_per_mesh);

/// [stage of the pin]
std::vector<int> meshes_of_stages(const PinnedPlan&);

/// A bound on such a pipeline under each of them.
double least_pipeline_s(const std::vector<StageFloor>&, const std::string& asked, int stages_per_mesh,
                        int micro_batches);

/// Likewise where stages share meshes: each mesh begins after the forwards before its first stage, and does
/// the work of all of its stages.
double least_shared_s(const std::vector<StageFloor>&, const std::string& schedule, int stages_per_mesh);

/// Likewise where steps overlap each other: a stage may begin with one while others end the one before.
double least_overlapping_s(const std::vector<StageFloor>&);

}  // namespace alpa
