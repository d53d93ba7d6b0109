#pragma once
#include <vector>

#include "libalpa/solver/selection/lifting.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// A smaller network with the same optimum, and the way back.
struct ReducedNetwork {
  enum class Verdict {
    open,       ///< network is to be solved (it may have no nodes left)
    forbidden,  ///< forbidden strategies and pairs leave no choice
    memory,     ///< no choice fits
  };
  Verdict verdict = Verdict::open;
  SelectionNetwork network;  ///< meaningless unless open
  Lifting lifting;
  std::vector<int> time_point;  ///< per time point of the reduced network, the point of the given one
};

}  // namespace alpa
