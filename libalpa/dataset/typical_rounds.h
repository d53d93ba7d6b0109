#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_source.h"

namespace alpa {

/// How many rows each round of `group` samples has on average, from the first: of groups drawn at random,
/// each packed under the policy. There are as many rounds as they have on average, and as many rows in all,
/// but for rounding; at least one in each. `children`: as GraphLimits says.
std::vector<std::int64_t> typical_rounds(GraphSource&, std::int64_t group, std::int64_t children,
                                         BatchingPolicy);

}  // namespace alpa
