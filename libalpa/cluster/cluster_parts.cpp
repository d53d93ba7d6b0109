#include "libalpa/cluster/cluster_parts.h"

#include <algorithm>

namespace alpa {

std::pair<int, int> parts_under(const Cluster& cluster, const DeviceMesh& mesh) {
  const int first_node = mesh.first_device / cluster.devices_per_node;
  const int last_node = (mesh.first_device + device_count(mesh.shape) - 1) / cluster.devices_per_node;
  int first = 0, end = 0, nodes = 0;  // of the parts before `end`
  for (const Cluster& part : cluster.parts) {
    if (end > 0 && nodes > last_node) break;
    nodes += part.nodes;
    ++end;
    if (nodes <= first_node) first = end;
  }
  return {std::clamp(first, 0, std::max(0, end - 1)), end};
}

Cluster cluster_under(const Cluster& cluster, const DeviceMesh& mesh) {
  const auto [first, end] = parts_under(cluster, mesh);
  return cluster.parts.empty() ? cluster : worst_of_parts(cluster, first, end);
}

double flops_per_s(const Cluster& cluster, int devices, DType type) {
  if (cluster.parts.empty()) return cluster.flops_per_s(type) * devices;
  double sum = 0;
  for (const Cluster& part : cluster.parts) {
    sum += flops_per_s(part, std::min(devices, part.devices()), type);
    devices -= std::min(devices, part.devices());
  }
  return sum;
}

std::vector<std::string> part_names(const Cluster& cluster, const DeviceMesh& mesh) {
  std::vector<std::string> names;
  const auto [first, end] = parts_under(cluster, mesh);
  for (int part = first; part < end; ++part) names.push_back(cluster.parts[part].name);
  return names;
}

}  // namespace alpa
