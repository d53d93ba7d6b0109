#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

struct NeighbourhoodOptions {
  std::vector<double> price;        ///< of memory per time point, as find_prices returns it
  std::int64_t work = 100'000'000;  ///< table entries to look at
  double patience = 4e7;            ///< of these in a row without gain end the search
  std::uint64_t seed = 0;           ///< equal seeds, equal searches
  double target = 0;                ///< stop when the incumbent costs at most this
  int lanes = 1;                    ///< walks at a time
  int threads = 1;                  ///< makes no difference to the result
};

/// Large-neighbourhood search from the incumbent, which must exist: again and again some nodes (a connected
/// region, or those that share a full time point) are chosen anew by elimination with everything else held
/// fast and memory paid at scaled prices; what is not worse is kept. Each lane walks by itself; after each
/// round the best of them takes over the steps of the others, and all go on from there.
void search_neighbourhoods(const SelectionNetwork&, Incumbent&, const NeighbourhoodOptions&, const Deadline&);

}  // namespace alpa
