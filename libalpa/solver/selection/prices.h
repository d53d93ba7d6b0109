#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// Prices per byte of memory at each time point, and the lower bound that they prove.
struct PricedBound {
  double bound = 0;           ///< on the cost of every fitting choice
  std::vector<double> price;  ///< per time point, cost per byte
  /// By how much the bound rises at least when a node must take a strategy, with respect to
  /// `reduction_bound`. Empty: the incumbent is within the gap, or there was no time.
  std::vector<std::vector<double>> reduced_costs;
  double reduction_bound = 0;
  std::vector<int>
      choice;  ///< what is (nearly) cheapest at these prices; need not fit, nor be allowed throughout
};

struct PriceOptions {
  double gap = 1e-6;            ///< stop when (incumbent - bound) / incumbent is at most this
  std::int64_t work = 1 << 30;  ///< table and edge entries to look at; bounds the number of iterations
  std::vector<double> start;    ///< prices to begin with; empty: none are known
  /// Where it is not 0, of networks without memory limits: so many sweeps of messages after the first at
  /// most, nothing by elimination, and no reduced costs.
  int most_sweeps = 0;
};

/// Lagrangian relaxation of the memory limits: subgradient steps on the prices; at each, the cheapest choice
/// when memory is paid for is found exactly by elimination, or bounded by message passing where tables would
/// be too large. Choices met on the way are repaired to fit and offered to the incumbent. The network must
/// come from presolve and have nodes.
PricedBound find_prices(const SelectionNetwork&, Incumbent&, const PriceOptions&, const Deadline&);

}  // namespace alpa
