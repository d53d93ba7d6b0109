#include "libalpa/cluster/mesh.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace alpa {
namespace {

MeshShape joined(int outer, const MeshShape& inner) {
  MeshShape shape{outer};
  shape.insert(shape.end(), inner.begin(), inner.end());
  return shape;
}

/// At most `axes` extents of `least` or more, in ascending order, whose product is `devices`; fewer first.
std::vector<MeshShape> ascending_shapes(int devices, int axes, int least) {
  std::vector<MeshShape> shapes{{devices}};
  for (int outer = least; axes > 1 && outer * outer <= devices; ++outer)
    if (devices % outer == 0)
      for (const MeshShape& inner : ascending_shapes(devices / outer, axes - 1, outer))
        shapes.push_back(joined(outer, inner));
  std::ranges::stable_sort(shapes, {}, &MeshShape::size);
  return shapes;
}

}  // namespace

int device_count(const MeshShape& shape) {
  int count = 1;
  for (const int extent : shape) count *= extent;
  return count;
}

std::string mesh_text(const MeshShape& shape) {
  if (shape.empty()) return "1";
  std::string text;
  for (const int extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::vector<int> coordinate_of(const DeviceMesh& mesh, DeviceIndex device) {
  int rest = device - mesh.first_device;
  assert(rest >= 0 && rest < device_count(mesh.shape));
  std::vector<int> coordinate(mesh.shape.size());
  for (std::size_t axis = mesh.shape.size(); axis-- > 0;) {
    coordinate[axis] = rest % mesh.shape[axis];
    rest /= mesh.shape[axis];
  }
  return coordinate;
}

std::vector<DeviceIndex> group_of(const DeviceMesh& mesh, const std::vector<int>& axes, DeviceIndex device) {
  const std::vector<int> fixed = coordinate_of(mesh, device);
  std::vector<DeviceIndex> members;
  const int end = mesh.first_device + device_count(mesh.shape);
  for (DeviceIndex other = mesh.first_device; other < end; ++other) {
    const std::vector<int> coordinate = coordinate_of(mesh, other);
    bool together = true;
    for (int axis = 0; axis < static_cast<int>(fixed.size()); ++axis) {
      const bool varies = std::find(axes.begin(), axes.end(), axis) != axes.end();
      together = together && (varies || coordinate[axis] == fixed[axis]);
    }
    if (together) members.push_back(other);
  }
  return members;
}

GroupShape group_shape(const DeviceMesh& mesh, int axis, int devices_per_node) {
  const std::size_t at = static_cast<std::size_t>(axis);
  const int members = mesh.shape[at];
  const int apart = device_count({mesh.shape.begin() + axis + 1, mesh.shape.end()});
  const int last = mesh.first_device + (members - 1) * apart;
  const int nodes = apart >= devices_per_node
                        ? members
                        : last / devices_per_node - mesh.first_device / devices_per_node + 1;
  return {nodes, (members + nodes - 1) / nodes};
}

std::vector<MeshShape> mesh_shapes(int devices, int devices_per_node, int axes) {
  if (devices == 1) return {MeshShape{}};
  if (devices <= devices_per_node) return ascending_shapes(devices, axes, 2);
  std::vector<MeshShape> shapes{{devices}};
  for (int outer = 2; axes > 1 && outer * 2 <= devices; ++outer)
    if (devices % outer == 0 && devices_per_node % (devices / outer) == 0)
      for (const MeshShape& inner : ascending_shapes(devices / outer, axes - 1, 2))
        shapes.push_back(joined(outer, inner));
  std::ranges::stable_sort(shapes, {}, &MeshShape::size);
  return shapes;
}

std::vector<int> submesh_sizes(int devices, int devices_per_node) {
  std::set<int> sizes{std::min(devices, devices_per_node)};
  const bool one_node = devices <= devices_per_node;
  for (int size = 1; size <= std::min(devices, devices_per_node); size *= 2)
    if (one_node || devices_per_node % size == 0) sizes.insert(size);  // none lies on parts of two nodes
  for (int nodes = 2; nodes * devices_per_node <= devices; ++nodes) sizes.insert(nodes * devices_per_node);
  return {sizes.begin(), sizes.end()};
}

}  // namespace alpa
