#pragma once
#include <optional>
#include <set>

#include "libalpa/plan/placement.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {

/// An update that all devices along a mesh axis make alike, of a sum that they add up by one all-reduce, and
/// that can be shared out between them by rows: each row's owner has its states, takes its gradient, and
/// hands what becomes of the parameter to the others (GradientSync::owners).
struct OwnableUpdate {
  NodeIndex update{0};
  int axis = 0;
  std::int64_t rows = 0;       ///< of a device's tile: extent of its first dimension
  std::int64_t row_bytes = 0;  ///< of the sum
};

/// nullopt where it cannot: its operator is not elementwise in the rows, its parameter is taken on other
/// meshes or rests on the host, the sum is sent in another type, or updates do not follow the norm in their
/// step.
std::optional<OwnableUpdate> ownable_update(const Placement&, MeshIndex, const ReducedGradient&);

/// The states, by their values at the start of a step, that owners alone have: of updates that the plan
/// shares out what nothing but they take.
std::set<ValueIndex> states_at_owners(const Plan&, const GraphUses&);

}  // namespace alpa
