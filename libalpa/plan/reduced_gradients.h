#pragma once
#include <vector>

#include "libalpa/plan/placement.h"
#include "libalpa/sharding/conversion.h"

namespace alpa {

/// All of a graph, sorted.
std::vector<ValueIndex> sums_of_gradients(const Graph&);

/// A sum of gradients, of which each device of its mesh has a term until they add them up over the mesh,
/// before the update.
struct ReducedGradient {
  ValueIndex sum{0};
  Conversion steps;  ///< one at least
  TensorType tile;   ///< of a term
};

/// Whether such a sum is brought into the layout of the update in the memory in which it lies, as far as that
/// can be: it is made there, and what leaves the mesh of it leaves in that layout.
bool is_summed_where_it_lies(const Placement&, MeshIndex, ValueIndex);

/// Those of a mesh, in the order in which the backward is done with them: of the layers the last first.
/// Conversions are those of the mesh.
std::vector<ReducedGradient> converted_gradients(const Placement&, MeshIndex, const Conversions&);

/// Those of them that are added up where they lie.
std::vector<ReducedGradient> reduced_gradients(const Placement&, MeshIndex, const Conversions&);

/// Whether one collective can add up both, side by side in memory: over the same axes, in one type.
bool can_share_bucket(const ReducedGradient&, const ReducedGradient&);

}  // namespace alpa
