#pragma once
#include <functional>
#include <vector>

#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// What an edge costs each time, the conversion and what has to run where there is one, for each choice at
/// its end.
std::vector<double> edge_seconds(const StageVariables&, const StageEdge&, std::size_t from, const MeshCosts&);

/// What a variable's choice says of the value at that end of an edge.
struct EdgeEnd {
  int layout = 0;
  bool at_rest = false;  ///< of a segment's layout: it is that in which the value rests
  bool as_made = false;  ///< of the layout at rest: it is that in which the value is made
  auto operator<=>(const EdgeEnd&) const = default;
};
EdgeEnd start_of_edge(const StageVariables&, const StageEdge&, std::size_t choice, const MeshCosts&);
EdgeEnd end_of_edge(const StageVariables&, const StageEdge&, std::size_t choice, const MeshCosts&);

/// [piece] What a value holds on its way between two ends; `as_made`: it rests as it is made.
using HeldBytes =
    std::function<std::vector<std::int64_t>(const EdgeEnd& from, const EdgeEnd& to, bool as_made)>;

/// The cases of an edge, all but their times. `rest` as in StageConversion.
StageConversion conversion_of(const StageVariables&, const StageEdge&, int rest, const HeldBytes&,
                              const MeshCosts&);

}  // namespace alpa
