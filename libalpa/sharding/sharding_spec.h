#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/cluster/mesh.h"

namespace alpa {

/// How one tensor is laid out over a mesh.
///
/// `axes[d]` lists the mesh axes that split dimension d, outermost first; an empty list means that the
/// dimension is whole on every device. On a {2, 4} mesh an (8, 128) tensor with axes {{0}, {}} becomes (4,
/// 128) tiles, each held by the 4 devices of one mesh row. `partial_sum` and `partial_max` have bit a set
/// when the devices along axis a hold terms that are yet to be summed (or maximised). Each mesh axis is used
/// at most once.
struct ShardingSpec {
  std::vector<std::vector<int>> axes;
  std::uint32_t partial_sum = 0;
  std::uint32_t partial_max = 0;

  auto operator<=>(const ShardingSpec&) const = default;

  bool is_partial() const { return (partial_sum | partial_max) != 0; }
};

ShardingSpec replicated_spec(std::size_t rank);

/// Whether the axis splits some dimension.
bool splits_along(const ShardingSpec&, int axis);

/// What becomes of a layout when its terms are reduced.
ShardingSpec without_terms(ShardingSpec);

/// Whether every axis is used at most once and splits its dimension evenly.
bool fits(const Shape& whole, const ShardingSpec&, const MeshShape&);

/// Shape of the tile each device holds. Throws Error(input) unless the spec fits.
Shape tile_shape(const Shape& whole, const ShardingSpec&, const MeshShape&);
TensorType tile_type(const TensorType& whole, const ShardingSpec&, const MeshShape&);

/// Global index of the first element of the tile at this mesh coordinate.
Shape tile_origin(const Shape& whole, const ShardingSpec&, const MeshShape&,
                  const std::vector<int>& coordinate);

/// How many devices hold each element (partial terms do not count as copies).
int replica_count(const ShardingSpec&, const MeshShape&);

/// Into how many terms a sum is divided, and which of them the device at this mesh coordinate has.
int term_count(const ShardingSpec&, const MeshShape&);
int term_at(const ShardingSpec&, const MeshShape&, const std::vector<int>& coordinate);

/// How many different tiles the first `devices` of the mesh hold.
int different_tiles(const ShardingSpec&, const MeshShape&, int devices);

/// "RR", "S0R", "RS01", "RR+sum1": one letter per dimension, R whole, S<axes> split; scalars "-".
std::string spec_text(const ShardingSpec&);

/// Reads spec_text. Throws Error(input).
ShardingSpec parse_spec(const std::string&);

/// Every spec of this tensor on this mesh that fits and is not partial, in a fixed order, replicated first.
std::vector<ShardingSpec> all_specs(const Shape& whole, const MeshShape&);

}  // namespace alpa
