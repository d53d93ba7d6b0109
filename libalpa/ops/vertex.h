#pragma once
#include <map>
#include <span>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/graph/vertex_body.h"
#include "libalpa/ops/vertex_states.h"

// Vertex functions (Cavs, ATC'18): a function F of one vertex, run for all vertices of graphs that come with
// the data, children before their parents. F is written as ordinary nodes over rows, one for each vertex:
// tensors [b v w] of b samples with room for v vertices each, and `group` consecutive samples' vertices
// packed into the first of their rows, round by round. `gather` stands for what the children of each row have
// published.
//
// The structure i32 [b v k+1] has for each row the rows of its at most k children within the group, -1: none,
// and in its last column, row by row of the group, the row at which each round ends, ascending; 0: no more.

namespace alpa {

/// Puts `rounds` in the place of the nodes from `first` on, which are a vertex function of a builder with
/// vertex_catalog(): what no gather reaches goes before it and is worked out for all rows at once, and what
/// no state waits for goes after it, as the form has it. `states` are the values that each state becomes,
/// `outputs` those that are used elsewhere. Returns what has become of the values of these nodes. Throws
/// Error(input) where a state waits for what rounds cannot do.
std::map<ValueIndex, ValueIndex> form_rounds(GraphBuilder&, NodeIndex first, ValueIndex structure,
                                             std::span<const ValueIndex> states,
                                             std::span<const ValueIndex> outputs, std::int64_t group,
                                             const RoundsForm& = {});

}  // namespace alpa
