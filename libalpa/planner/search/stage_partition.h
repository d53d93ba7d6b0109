#pragma once
#include <vector>

#include "libalpa/planner/search/pipeline_table.h"
#include "libalpa/planner/search/stage_choices.h"

namespace alpa {

/// The least pipeline_seconds for each number of stages that has a partition, ascending; numbers whose best
/// is 5 % behind the best of all may be missing. Bounds on the slowest stage are bisected down to the least
/// for which there are devices enough; from there up, for each the least sum (Alpa, section 5.2); and all
/// that for bounds on the slowest update, between which nothing better can be. Slowest stages, and updates,
/// that differ by `alike` of the whole count as equal, so that much may be lost of either.
std::vector<Partition> best_partitions(const StageChoices&, int least_stages, double alike = 1e-4,
                                       const FillOptions& = {});

/// Of all partitions below `most_s` the best, as many as `count`, ascending by pipeline_seconds. Where very
/// many are near each other, some may be missing.
std::vector<Partition> near_partitions(const StageChoices&, int least_stages, double most_s,
                                       std::size_t count, const FillOptions& = {});

}  // namespace alpa
