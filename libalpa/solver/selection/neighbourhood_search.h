#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

struct NeighbourhoodOptions {
  std::vector<double> price;        ///< of memory per time point, as find_prices returns it
  std::int64_t work = 100'000'000;  ///< table entries to look at
  int patience = 1000;              ///< neighbourhoods in a row without gain that end the search
  std::uint64_t seed = 0;           ///< equal seeds, equal searches
  double target = 0;                ///< stop when the incumbent costs at most this
};

/// Large-neighbourhood search from the incumbent, which must exist: again and again some nodes (a connected
/// region, or those that share a full time point) are chosen anew by elimination with everything else held
/// fast and memory paid at randomly scaled prices; what fits and is not worse is kept.
void search_neighbourhoods(const SelectionNetwork&, Incumbent&, const NeighbourhoodOptions&, const Deadline&);

}  // namespace alpa
