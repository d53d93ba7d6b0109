#include "libalpa/cluster/cluster_columns.h"

#include <fmt/core.h>

#include <map>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, "the cluster in the file is not valid: " + what, "make the file again");
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

/// Likewise those that may be 0: the devices do not compute in the type.
template <class ClusterType, class Visit>
void visit_rates_of_types(ClusterType& cluster, Visit&& visit) {
  visit("bf16_flops_per_s", cluster.bf16_flops_per_s);
  visit("f16_flops_per_s", cluster.f16_flops_per_s);
}

/// Of files of before the figure was measured: as long as alone.
constexpr const char* kSlowdown = "overlap_slowdown";
constexpr double kNoSlowdown = 1;

/// Likewise: not known (0).
constexpr const char *kHostRate = "host_bytes_per_s", *kHostMemory = "host_memory_bytes",
                     *kServers = "servers";

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

/// One row for each part. What all of them have is not said again.
void write_part_rows(H5Writer& file, const std::vector<Cluster>& parts) {
  std::vector<std::string> name, device;
  std::vector<std::int64_t> nodes, nics, memory, host_memory;
  std::map<std::string, std::vector<double>> numbers;
  for (const Cluster& part : parts) {
    name.push_back(part.name);
    device.push_back(part.device);
    nodes.push_back(part.nodes);
    nics.push_back(part.nics_per_node);
    memory.push_back(part.memory_bytes);
    host_memory.push_back(part.host_memory_bytes);
    visit_numbers(part,
                  [&](const std::string& of, double value, const Range&) { numbers[of].push_back(value); });
    visit_rates_of_types(part, [&](const std::string& of, double value) { numbers[of].push_back(value); });
    numbers[kSlowdown].push_back(part.overlap_slowdown);
    numbers[kHostRate].push_back(part.host_bytes_per_s);
  }
  file.column("/cluster/parts/name", name);
  file.column("/cluster/parts/device", device);
  file.column("/cluster/parts/nodes", nodes, "1");
  file.column("/cluster/parts/nics_per_node", nics, "1");
  file.column("/cluster/parts/memory_bytes", memory, "byte");
  file.column(std::string("/cluster/parts/") + kHostMemory, host_memory, "byte");
  for (const auto& [of, values] : numbers)
    file.column("/cluster/parts/" + of, values,
                of.ends_with("flops_per_s")   ? "FLOP/s"
                : of.ends_with("bytes_per_s") ? "byte/s"
                : of == kSlowdown             ? "1"
                                              : "s");
}

std::vector<Cluster> read_part_rows(const H5Reader& file, const Cluster& whole) {
  const std::string group = "/cluster/parts/";
  const std::vector<std::string> name = file.strings(group + "name");
  const Shape rows{std::ssize(name)};
  if (name.size() < 2 || name.size() > kMostParts)
    refuse(fmt::format("{}name has {} rows, expected 2 to {}", group, name.size(), kMostParts));
  const auto device = file.strings(group + "device", rows);
  const auto integers = [&](const std::string& of, const Range& range) {
    std::vector<std::int64_t> values = file.int64s(group + of, rows);
    for (const std::int64_t value : values) checked(("parts/" + of).c_str(), value, range);
    return values;
  };
  const auto nodes = integers("nodes", kNodeRange), nics = integers("nics_per_node", kNicsRange),
             memory = integers("memory_bytes", kMemoryRange);
  std::vector<Cluster> parts(name.size());
  std::int64_t all_nodes = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Cluster& part = parts[p];
    if (!is_name(name[p]) || !is_name(device[p]))
      refuse(fmt::format("/cluster/parts, row {}: expected names of a part and of its device", p));
    part.name = name[p];
    part.device = device[p];
    part.kind = whole.kind;
    part.nodes = static_cast<int>(nodes[p]);
    part.devices_per_node = whole.devices_per_node;
    part.nics_per_node = static_cast<int>(nics[p]);
    part.memory_bytes = memory[p];
    all_nodes += nodes[p];
    const auto number = [&](const std::string& of) { return file.doubles(group + of, rows)[p]; };
    visit_numbers(part, [&](const std::string& of, double& value, const Range& range) {
      value = checked(("parts/" + of).c_str(), number(of), range);
    });
    visit_rates_of_types(part, [&](const std::string& of, double& value) {
      value = number(of) == 0 ? 0 : checked(("parts/" + of).c_str(), number(of), kRateRange);
    });
    part.overlap_slowdown = file.has(group + kSlowdown)
                                ? checked("parts/overlap_slowdown", number(kSlowdown), kSlowdownRange)
                                : kNoSlowdown;
    if (file.has(group + kHostRate) && number(kHostRate) != 0)
      part.host_bytes_per_s = checked("parts/host_bytes_per_s", number(kHostRate), kRateRange);
    if (file.has(group + kHostMemory))
      if (const std::int64_t bytes = file.int64s(group + kHostMemory, rows)[p]; bytes != 0)
        part.host_memory_bytes = checked("parts/host_memory_bytes", bytes, kMemoryRange);
  }
  if (all_nodes != whole.nodes)
    refuse(fmt::format("its parts have {} nodes, expected {}", all_nodes, whole.nodes));
  return parts;
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
  visit_rates_of_types(cluster,
                       [&](const char* name, double value) { file.attribute("/cluster", name, value); });
  file.attribute("/cluster", kSlowdown, cluster.overlap_slowdown);
  file.attribute("/cluster", kHostRate, cluster.host_bytes_per_s);
  file.attribute("/cluster", kHostMemory, cluster.host_memory_bytes);
  if (cluster.servers > 0) file.attribute("/cluster", kServers, cluster.servers);
  if (!cluster.parts.empty()) write_part_rows(file, cluster.parts);
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
  visit_rates_of_types(cluster,
                       [&](const char* name, double& value) { value = rate_of_type(file, name, cluster); });
  cluster.overlap_slowdown =
      file.has_attribute("/cluster", kSlowdown)
          ? checked(kSlowdown, file.double_attribute("/cluster", kSlowdown), kSlowdownRange)
          : kNoSlowdown;
  if (file.has_attribute("/cluster", kHostRate))
    if (const double rate = file.double_attribute("/cluster", kHostRate); rate != 0)
      cluster.host_bytes_per_s = checked(kHostRate, rate, kRateRange);
  if (file.has_attribute("/cluster", kHostMemory) && file.int64_attribute("/cluster", kHostMemory) != 0)
    cluster.host_memory_bytes = integer(kHostMemory, kMemoryRange);
  if (file.has_attribute("/cluster", kServers))
    cluster.servers = static_cast<int>(integer(kServers, kServersRange));
  if (!file.has("/cluster/parts")) return cluster;
  if (cluster.servers > 0) refuse("its nodes differ, and some are servers; expected one or the other");
  return cluster_of_parts(cluster.name, read_part_rows(file, cluster));
}

}  // namespace alpa
