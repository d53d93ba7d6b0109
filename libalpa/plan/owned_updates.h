#pragma once
#include <set>
#include <vector>

#include "libalpa/plan/placement.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {

/// An update that all devices along a mesh axis make alike, of a sum that they add up over that axis, and
/// that can be shared out between them by rows: each row's owner has its states, takes its gradient, and
/// hands what becomes of the parameter to the others (GradientSync::owners). It may take several such sums
/// (tied weights), which nodes of the update add up first: owners of a row have it of all of them. Where each
/// device adds its terms of these first, what that makes is the sum.
struct OwnableUpdate {
  NodeIndex update{0};
  std::vector<ValueIndex> sums;  ///< in the order in which the backward is done with them; one at least
  int axis = 0;
  std::int64_t rows = 0;       ///< of a device's tile: extent of its first dimension
  std::int64_t row_bytes = 0;  ///< of a sum
};

/// All of a mesh, in the order in which the backward is done with the last of their sums, those whose sums
/// the update makes last. An update is none of them where an operator on the way from its sums is not
/// elementwise in the rows, its parameter is taken on other meshes or rests on the host, a sum is sent in
/// another type or to another mesh, or updates do not follow the norm in their step. Conversions are those of
/// the mesh.
std::vector<OwnableUpdate> ownable_updates(const Placement&, MeshIndex, const Conversions&);

/// The states, by their values at the start of a step, that owners alone have: of updates that the plan
/// shares out what nothing but they take.
std::set<ValueIndex> states_at_owners(const Plan&, const GraphUses&);

}  // namespace alpa
