#pragma once
#include <vector>

#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// A solution of the dual of a network's linear relaxation: any prices that are not negative and any costs
/// moved between edges and nodes prove a lower bound. Which they are decides how good it is, never whether it
/// is one.
struct DualSolution {
  /// What an edge hands to the strategies of its two ends.
  struct Moved {
    std::vector<double> from, to;
  };
  std::vector<double> price;  ///< per time point, cost per byte
  std::vector<Moved> moved;   ///< per edge
};

struct Certificate {
  double bound = 0;  ///< on the cost of every fitting choice
  /// By how much the bound rises at least when a node must take a strategy.
  std::vector<std::vector<double>> reduced_costs;
};

/// Evaluates the dual solution in integers: everything is counted in a unit, a power of two, that is a
/// divisor of whole costs; what is not a multiple of the unit is rounded so that the bound falls. So floating
/// point cannot make it too large. The network's costs must not be negative. One pass over all edges.
Certificate certify(const SelectionNetwork&, const DualSolution&);

}  // namespace alpa
