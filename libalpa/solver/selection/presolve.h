#pragma once
#include "libalpa/solver/selection/reduced_network.h"

namespace alpa {

enum class CapacityMeaning {
  limit,            ///< choices that exceed it are none
  may_be_exceeded,  ///< they are allowed; time points that cannot exceed it are of no interest
};

/// Reduces until nothing changes: strategies that are forbidden, have no allowed partner, cannot fit or are
/// dominated go; nodes that a neighbour decides through forbidden pairs are merged into it; row and column
/// minima of edges move into nodes and empty edges go; nodes of degree 0 to 2 whose memory cannot matter are
/// eliminated; time points that can never be over capacity, or only when another is, are dropped.
///
/// Keeps at least one best choice; does not keep all of them. Costs of the reduced network are at least 0,
/// and each of its strategies has an allowed partner on every edge.
ReducedNetwork presolve(const SelectionNetwork&, CapacityMeaning = CapacityMeaning::limit);

}  // namespace alpa
