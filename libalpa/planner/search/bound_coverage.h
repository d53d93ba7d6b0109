#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/space_bounds.h"

namespace alpa {

/// Which plans the least bound on those spaces, as of SearchedSpaces::widest(), is of: "every plan of 4, 8
/// micro-batches, cut into stages between 6 clusters of layers, ...". `any`: any_stages() of the widest.
/// `by_work`: of the bound by computation alone.
std::string coverage_text(const std::vector<SpaceBounds>&, const SearchSpace& any, int devices_per_node,
                          bool by_work);

}  // namespace alpa
