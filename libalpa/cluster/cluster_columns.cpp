#include "libalpa/cluster/cluster_columns.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, "the cluster in the file makes no sense: " + what, "make the file again");
}

/// The numbers of a cluster, one list for writing and reading.
template <class ClusterType, class Visit>
void visit_numbers(ClusterType& cluster, Visit&& visit) {
  visit("f32_flops_per_s", cluster.f32_flops_per_s, kRateRange);
  visit("memory_bytes_per_s", cluster.memory_bytes_per_s, kRateRange);
  visit("launch_s", cluster.launch_s, kTimeRange);
  visit("within_node_latency_s", cluster.within_node.latency_s, kTimeRange);
  visit("within_node_bytes_per_s", cluster.within_node.bytes_per_s, kRateRange);
  visit("between_nodes_latency_s", cluster.between_nodes.latency_s, kTimeRange);
  visit("between_nodes_bytes_per_s", cluster.between_nodes.bytes_per_s, kRateRange);
}

template <class Number>
Number checked(const char* name, Number value, const Range& range) {
  if (!range.contains(static_cast<double>(value)))
    refuse(fmt::format("/cluster/{} is {}, expected {}", name, value, range_text(range)));
  return value;
}

std::string name_attribute(const H5Reader& file, const char* name) {
  std::string text = file.text_attribute("/cluster", name);
  if (!is_name(text)) refuse(fmt::format("/cluster/{} is '{}', expected a name", name, text));
  return text;
}

/// Files of before they named it, which profiles are too expensive to make again, say it by the device's
/// words.
DeviceKind kind_attribute(const H5Reader& file, const std::string& device) {
  if (!file.has_attribute("/cluster", "kind")) return kind_of_words(device);
  const std::string name = file.text_attribute("/cluster", "kind");
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (name == kind_name(kind)) return kind;
  refuse(fmt::format("/cluster/kind is '{}', expected cpu or cuda", printable(name, "")));
}

/// 0 where the devices do not compute in the type. Files of before f16 had a rate of its own mean that of
/// bf16, if the devices are GPUs.
double rate_of_type(const H5Reader& file, const char* name, const Cluster& cluster) {
  if (!file.has_attribute("/cluster", name))
    return cluster.kind == DeviceKind::cuda ? cluster.bf16_flops_per_s : 0;
  const double value = file.double_attribute("/cluster", name);
  return value == 0 ? 0 : checked(name, value, kRateRange);
}

}  // namespace

void write_cluster(H5Writer& file, const Cluster& cluster) {
  file.group("/cluster");
  file.attribute("/cluster", "name", cluster.name);
  file.attribute("/cluster", "device", cluster.device);
  file.attribute("/cluster", "kind", std::string(kind_name(cluster.kind)));
  file.attribute("/cluster", "nodes", cluster.nodes);
  file.attribute("/cluster", "devices_per_node", cluster.devices_per_node);
  file.attribute("/cluster", "nics_per_node", cluster.nics_per_node);
  file.attribute("/cluster", "memory_bytes", cluster.memory_bytes);
  visit_numbers(cluster, [&](const char* name, double value, const Range&) {
    file.attribute("/cluster", name, value);
  });
  file.attribute("/cluster", "bf16_flops_per_s", cluster.bf16_flops_per_s);
  file.attribute("/cluster", "f16_flops_per_s", cluster.f16_flops_per_s);
}

Cluster read_cluster(const H5Reader& file) {
  const auto integer = [&](const char* name, const Range& range) {
    return checked(name, file.int64_attribute("/cluster", name), range);
  };
  Cluster cluster;
  cluster.name = name_attribute(file, "name");
  cluster.device = name_attribute(file, "device");
  cluster.kind = kind_attribute(file, cluster.device);
  cluster.nodes = static_cast<int>(integer("nodes", kNodeRange));
  cluster.devices_per_node = static_cast<int>(integer("devices_per_node", kDevicesPerNodeRange));
  if (cluster.devices() > kMostDevices)
    refuse(fmt::format("it has {} nodes of {} devices, expected {} devices at most", cluster.nodes,
                       cluster.devices_per_node, kMostDevices));
  // Rates of older files are what each device has where all of a node send.
  cluster.nics_per_node = file.has_attribute("/cluster", "nics_per_node")
                              ? static_cast<int>(integer("nics_per_node", kNicsRange))
                              : cluster.devices_per_node;
  cluster.memory_bytes = integer("memory_bytes", kMemoryRange);
  visit_numbers(cluster, [&](const char* name, double& value, const Range& range) {
    value = checked(name, file.double_attribute("/cluster", name), range);
  });
  cluster.bf16_flops_per_s = rate_of_type(file, "bf16_flops_per_s", cluster);
  cluster.f16_flops_per_s = rate_of_type(file, "f16_flops_per_s", cluster);
  return cluster;
}

}  // namespace alpa
