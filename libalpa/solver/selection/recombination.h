#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

struct RecombinationOptions {
  std::vector<double> price;  ///< of memory per time point
  double work = 1e8;          ///< table entries to look at
  std::uint64_t seed = 0;
  int threads = 1;
};

/// Looks for the best mixture of choices that fit: strategies that none of them has are left out, presolve
/// makes the rest small, and a neighbourhood search from the best of them can choose large regions of it
/// anew (construct, merge, solve and adapt: Blum and others, 2016). The first choice is the best. Offers what
/// it finds.
void recombine(const SelectionNetwork&, const std::vector<std::vector<int>>& choices, Incumbent&,
               const RecombinationOptions&, const Deadline&);

}  // namespace alpa
