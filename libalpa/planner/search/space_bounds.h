#pragma once
#include <deque>
#include <map>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

/// On steps: under every schedule that is asked for, and under the first of them. 0: not known, for want of
/// time.
struct StepBound {
  double step_s = infinity, of_first_s = infinity;
  double work_s = infinity;  ///< by computation alone, whatever overlaps and shares meshes
};

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

/// What searches showed of spaces, each wider than those before it.
class SearchedSpaces {
 public:
  /// On the plans of a space with so many micro-batches, for a search to say: not known until then. Stays
  /// where it is.
  StepBound& bound(const PlanSpace&, int micro_batches);

  /// Numbers of micro-batches that were searched in the first space.
  std::vector<int> counts() const;

  /// Each number of micro-batches once, in the widest space in which its bound is known; widest space first.
  std::vector<SpaceBounds> widest() const;

 private:
  std::deque<SpaceBounds> spaces_;
};

/// On all of those plans.
StepBound least_bound(const std::vector<SpaceBounds>&);

}  // namespace alpa
