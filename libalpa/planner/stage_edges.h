#pragma once
#include <vector>

#include "libalpa/planner/stage_variables.h"

namespace alpa {

/// What an edge costs each time, the conversion and what has to run where there is one, for each choice at
/// its end.
std::vector<double> edge_seconds(const StageVariables&, const StageEdge&, std::size_t from,
                                 const MeshPrices&);

/// The layout that a variable's choice gives the value at that end of an edge.
int layout_at_start(const StageVariables&, const StageEdge&, std::size_t choice, const MeshPrices&);
int layout_at_end(const StageVariables&, const StageEdge&, std::size_t choice, const MeshPrices&);

}  // namespace alpa
