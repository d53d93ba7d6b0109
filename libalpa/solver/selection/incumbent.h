#pragma once
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// The best fitting choice seen so far.
struct Incumbent {
  std::vector<int> choice;
  double cost = infinity;  ///< infinite: none yet

  bool exists() const { return cost < infinity; }

  /// Takes over a choice that fits if it is cheaper.
  void offer(const std::vector<int>& candidate, double candidate_cost) {
    if (candidate_cost < cost) choice = candidate, cost = candidate_cost;
  }
};

}  // namespace alpa
