#pragma once
#include <string>
#include <utility>
#include <vector>

#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"

namespace alpa {

// Where a mesh lies on a cluster whose nodes differ. Devices of several parts that work in lockstep go at the
// pace of the slowest, and hold what the smallest holds.

/// The numbers of the first part that a mesh has devices of, and of the one after the last; {0, 0} where the
/// nodes of the cluster are equal.
std::pair<int, int> parts_under(const Cluster&, const DeviceMesh&);

/// What a mesh finds where it lies: equal nodes, with the worst figures of these parts. Itself where the
/// nodes of the cluster are equal.
Cluster cluster_under(const Cluster&, const DeviceMesh&);

/// Of the first `devices` devices together.
double flops_per_s(const Cluster&, int devices, DType);

/// The names of these parts: {"v100", "a100"}; none where the nodes of the cluster are equal.
std::vector<std::string> part_names(const Cluster&, const DeviceMesh&);

}  // namespace alpa
