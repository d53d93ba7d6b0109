#pragma once
#include "tests/planner/planning_targets.h"

namespace alpa {

/// How many of the targets so far were reached.
struct TargetCount {
  int reached = 0, all = 0;

  /// Counts one; what its row ends with.
  const char* mark(bool is_reached) {
    ++all;
    reached += is_reached ? 1 : 0;
    return is_reached ? "" : "  MISSED";
  }
};

/// How long planning takes: alpa-plan from cluster files alone, as users call it, one run at a time. Prints a
/// row for each case, with what was planned.
void bench_speed(const SpeedTargets&, TargetCount&);

/// How good plans are: prints, for each published row, what the simulator gives the planner's
/// own plan, the published plan (configs/pins/published) and other systems' best, beside the published
/// seconds.
void bench_quality(const QualityTargets&, TargetCount&);

}  // namespace alpa
