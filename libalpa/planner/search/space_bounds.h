#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

/// On steps: under every schedule that is asked for, and under the first of them. 0: not known, for want of
/// time.
struct StepBound {
  double step_s = infinity, of_first_s = infinity;
};

/// On the steps of all plans on meshes of so many axes, by micro-batches.
struct SpaceBounds {
  int mesh_axes = 0;
  std::map<int, StepBound> of_count = {};

  bool knows(int micro_batches) const {
    const auto bound = of_count.find(micro_batches);
    return bound != of_count.end() && bound->second.step_s > 0;
  }
  std::vector<int> known_counts() const {
    std::vector<int> counts;
    for (const auto& [count, bound] : of_count)
      if (bound.step_s > 0) counts.push_back(count);
    return counts;
  }
  /// Of those that are known.
  StepBound least() const {
    StepBound least;
    for (const int count : known_counts()) {
      const StepBound& bound = of_count.at(count);
      least = {std::min(least.step_s, bound.step_s), std::min(least.of_first_s, bound.of_first_s)};
    }
    return least;
  }
};

}  // namespace alpa
