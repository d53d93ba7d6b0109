#include "libalpa/planner/search/search_space.h"

#include <algorithm>
#include <bit>

namespace alpa {

std::vector<int> stage_sizes(const SearchSpace& space, const Cluster& cluster) {
  if (space.single_devices) return {1};
  std::vector<int> sizes = submesh_sizes(space.devices, cluster.devices_per_node);
  if (space.most_stages == 1) std::erase_if(sizes, [&](int size) { return size != space.devices; });
  const auto is_doubled = [&](int size) {
    const int nodes = size / cluster.devices_per_node;
    return size == space.devices || nodes <= 1 || std::has_single_bit(static_cast<unsigned>(nodes));
  };
  if (space.doubling_sizes) std::erase_if(sizes, [&](int size) { return !is_doubled(size); });
  return sizes;
}

std::vector<MeshShape> stage_meshes(const SearchSpace& space, const Cluster& cluster) {
  std::vector<MeshShape> meshes;
  for (const int size : stage_sizes(space, cluster))
    for (const MeshShape& mesh : mesh_shapes(size, cluster.devices_per_node)) meshes.push_back(mesh);
  return meshes;
}

}  // namespace alpa
