#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/space_bounds.h"

namespace alpa {

/// Which plans the least bound on those spaces, as of SearchedSpaces::widest(), is of: "every plan of 4, 8
/// micro-batches, cut into stages between 6 clusters of layers, ...". `any`: any_stages() of the widest.
std::string coverage_text(const std::vector<SpaceBounds>&, const SearchSpace& any, int devices_per_node);

/// Likewise of a bound by computation alone, with these numbers of micro-batches.
std::string work_coverage_text(const std::vector<int>& micro_batches, const SearchSpace& any,
                               int devices_per_node);

}  // namespace alpa
