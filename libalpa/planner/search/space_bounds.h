#pragma once
#include <algorithm>
#include <map>

#include "libalpa/base/infinity.h"

namespace alpa {

/// On steps: under every schedule that is asked for, and under the first of them. 0: not known, for want of
/// time.
struct StepBound {
  double step_s = infinity, of_first_s = infinity;
};

inline StepBound least_of(const StepBound& a, const StepBound& b) {
  return {std::min(a.step_s, b.step_s), std::min(a.of_first_s, b.of_first_s)};
}

/// What one search may choose from.
struct PlanSpace {
  int mesh_axes = 0;          ///< at most
  bool is_selective = false;  ///< layers may be recomputed selectively, not only fully
  bool operator==(const PlanSpace&) const = default;
};

/// On the steps of all plans of a space, by micro-batches.
struct SpaceBounds {
  PlanSpace space;
  std::map<int, StepBound> of_count = {};
};

}  // namespace alpa
