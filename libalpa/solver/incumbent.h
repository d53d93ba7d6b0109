#pragma once
#include <limits>
#include <utility>
#include <vector>

#include "libalpa/solver/selection_network.h"

namespace alpa {

/// The best fitting choice seen so far.
struct Incumbent {
  std::vector<int> choice;
  double cost = std::numeric_limits<double>::infinity();  ///< infinite: none yet

  bool exists() const { return cost < std::numeric_limits<double>::infinity(); }

  /// Takes over a choice that fits if it is cheaper.
  void offer(const std::vector<int>& candidate, double candidate_cost) {
    if (candidate_cost < cost) choice = candidate, cost = candidate_cost;
  }
};

}  // namespace alpa
