#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_source.h"

namespace alpa {

/// What typical_rounds() takes groups of.
struct DrawnSteps {
  std::int64_t samples = 0;   ///< of a step, a whole number of groups; they are drawn at random
  std::int64_t group = 0;     ///< samples that are packed together
  std::int64_t children = 0;  ///< as GraphLimits says
};

/// How many rows each round of a group has on average, from the first. There are as many rounds as groups
/// have on average, and as many rows in all, but for rounding; at least one in each.
std::vector<std::int64_t> typical_rounds(GraphSource&, const DrawnSteps&, const GraphBatching&);

}  // namespace alpa
