#include "libalpa/planner/search/search_space.h"

#include <algorithm>
#include <bit>

namespace alpa {
namespace {

/// Whether a stage of that size may have both devices. One within a node begins at a multiple of its size
/// where that divides all larger sizes.
bool may_hold_both(const std::pair<int, int>& apart, int size, const std::vector<int>& sizes,
                   int devices_per_node) {
  if (size <= apart.second - apart.first) return false;
  const bool is_aligned = size <= devices_per_node && std::ranges::all_of(sizes, [&](int other) {
                            return other <= size || other % size == 0;
                          });
  return !is_aligned || apart.first / size == apart.second / size;
}

}  // namespace

std::vector<int> stage_sizes(const SearchSpace& space, const Cluster& cluster) {
  if (space.single_devices) return {1};
  const std::vector<int> all = submesh_sizes(space.devices, cluster.devices_per_node);
  std::vector<int> sizes = all;
  if (space.most_stages == 1) std::erase_if(sizes, [&](int size) { return size != space.devices; });
  const auto is_doubled = [&](int size) {
    const int nodes = size / cluster.devices_per_node;
    return size == space.devices || nodes <= 1 || std::has_single_bit(static_cast<unsigned>(nodes));
  };
  for (const std::pair<int, int>& apart : space.apart)
    std::erase_if(sizes, [&](int size) { return may_hold_both(apart, size, all, cluster.devices_per_node); });
  if (space.doubling_sizes) std::erase_if(sizes, [&](int size) { return !is_doubled(size); });
  return sizes;
}

std::vector<MeshShape> stage_meshes(const SearchSpace& space, const Cluster& cluster) {
  std::vector<MeshShape> meshes;
  for (const int size : stage_sizes(space, cluster))
    for (const MeshShape& mesh : mesh_shapes(size, cluster.devices_per_node, space.mesh_axes))
      meshes.push_back(mesh);
  return meshes;
}

}  // namespace alpa
