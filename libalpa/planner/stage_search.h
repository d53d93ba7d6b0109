#pragma once
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/planner/make_plan.h"

namespace alpa {

/// The stages of a proposal with their solutions.
struct Proposal {
  std::vector<StageRequest> requests;
  std::vector<StageSolution> solutions;
  double estimate_s = 0;  ///< sum of stages + (micro-batches - 1) * slowest + largest update
};

/// What to look for.
struct SearchSpace {
  int devices = 1;
  int micro_batches = 1;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::vector<bool> rematerialize{false, true};  ///< what may be tried
  int least_stages = 1, most_stages = 1 << 20;
  bool single_devices = false;                   ///< stages of one device only
  double end_s = 0;                              ///< monotonic seconds at which to stop refining
};

/// What became of the search when it found nothing.
struct SearchShortfall {
  int first_layer = 0, end_layer = 0;
  std::int64_t least_memory = 0;
};

/// Cuts the layers into stages on submeshes by the dynamic program of Alpa (OSDI'22, section 5.2): for each bound on the
/// slowest stage, the least sum of stage times; equal ranges are solved once. Returns the best proposal for each number of
/// stages that has one.
std::vector<Proposal> search_stages(const PlanningGraph&, const SearchSpace&, const CostModel&, SearchShortfall&);

}  // namespace alpa
