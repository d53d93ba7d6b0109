#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/base/collective_traffic.h"
#include "libalpa/base/index.h"

namespace alpa {

/// A device of a cluster: the rank of the job that computes on it, among all.
using DeviceIndex = Index<struct ClusterDevice>;
using MeshIndex = Index<struct DeviceMesh>;  ///< of a plan's, or its program's

/// Number of devices along each axis of a logical device mesh, e.g. {2, 4}; {} is one device.
using MeshShape = std::vector<int>;

int device_count(const MeshShape&);
std::string mesh_text(const MeshShape&);  ///< "2x4", "1"

/// A contiguous range of the cluster's devices (= ranks) seen as a mesh, row-major: on a {2, 4} mesh that
/// starts at device 8, the device at coordinate (1, 2) is 8 + 1*4 + 2.
struct DeviceMesh {
  DeviceIndex first_device{0};
  MeshShape shape;
  bool operator==(const DeviceMesh&) const = default;
};

/// Coordinate of a device (cluster index) in the mesh.
std::vector<int> coordinate_of(const DeviceMesh&, DeviceIndex device);

/// The devices that differ from `device` along these axes only, in mesh order: who takes part with it in a
/// collective over the axes.
std::vector<DeviceIndex> group_of(const DeviceMesh&, const std::vector<int>& axes, DeviceIndex device);

/// Shape of the groups along one axis when each node holds `devices_per_node` consecutive devices.
GroupShape group_shape(const DeviceMesh&, int axis, int devices_per_node);

/// Devices of a mesh on each of its nodes.
inline int devices_on_node(const MeshShape& mesh, int devices_per_node) {
  return std::min(device_count(mesh), devices_per_node);
}

/// The most axes that pins and the search have: each more multiplies the ways to split a tensor.
inline constexpr int kMostMeshAxes = 3;

/// Meshes of at most `axes` axes, each of 2 or more, that `devices` devices can be seen as, those of fewer
/// axes first. Where they are on several nodes, all axes but the first stay within one. Axes within a node
/// are alike, so they are there in ascending order only.
std::vector<MeshShape> mesh_shapes(int devices, int devices_per_node, int axes);

/// Sizes of submeshes: powers of two within a node, and whole nodes (Alpa, theorem 1).
std::vector<int> submesh_sizes(int devices, int devices_per_node);

}  // namespace alpa
