#include "libalpa/cluster/cluster_columns.h"

#include <fmt/core.h>

#include <cmath>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, "the cluster in the file makes no sense: " + what, "make the file again");
}

/// The numbers of a cluster, one list for writing and reading. Times may be zero, rates may not.
template <class ClusterType, class Time, class Rate>
void visit_numbers(ClusterType& cluster, Time&& time, Rate&& rate) {
  rate("f32_flops_per_s", cluster.f32_flops_per_s);
  rate("bf16_flops_per_s", cluster.bf16_flops_per_s);
  rate("memory_bytes_per_s", cluster.memory_bytes_per_s);
  time("launch_s", cluster.launch_s);
  time("within_node_latency_s", cluster.within_node.latency_s);
  rate("within_node_bytes_per_s", cluster.within_node.bytes_per_s);
  time("between_nodes_latency_s", cluster.between_nodes.latency_s);
  rate("between_nodes_bytes_per_s", cluster.between_nodes.bytes_per_s);
}

}  // namespace

void write_cluster(H5Writer& file, const Cluster& cluster) {
  file.group("/cluster");
  file.attribute("/cluster", "name", cluster.name);
  file.attribute("/cluster", "device", cluster.device);
  file.attribute("/cluster", "nodes", cluster.nodes);
  file.attribute("/cluster", "devices_per_node", cluster.devices_per_node);
  file.attribute("/cluster", "memory_bytes", cluster.memory_bytes);
  const auto write = [&](const char* name, double value) { file.attribute("/cluster", name, value); };
  visit_numbers(cluster, write, write);
}

Cluster read_cluster(const H5Reader& file) {
  const auto count = [&](const char* name) {
    const std::int64_t value = file.int64_attribute("/cluster", name);
    if (value < 1 || value > (1 << 20))
      refuse(fmt::format("/cluster/{} is {}, expected from 1 to 2^20", name, value));
    return static_cast<int>(value);
  };
  Cluster cluster;
  cluster.name = file.text_attribute("/cluster", "name");
  cluster.device = file.text_attribute("/cluster", "device");
  cluster.nodes = count("nodes");
  cluster.devices_per_node = count("devices_per_node");
  cluster.memory_bytes = file.int64_attribute("/cluster", "memory_bytes");
  if (cluster.memory_bytes <= 0) refuse(fmt::format("/cluster/memory_bytes is {}", cluster.memory_bytes));
  const auto time = [&](const char* name, double& value) {
    value = file.double_attribute("/cluster", name);
    if (!std::isfinite(value) || value < 0)
      refuse(fmt::format("/cluster/{} is {}, expected a time", name, value));
  };
  const auto rate = [&](const char* name, double& value) {
    value = file.double_attribute("/cluster", name);
    if (!std::isfinite(value) || value <= 0)
      refuse(fmt::format("/cluster/{} is {}, expected a rate", name, value));
  };
  visit_numbers(cluster, time, rate);
  return cluster;
}

}  // namespace alpa
