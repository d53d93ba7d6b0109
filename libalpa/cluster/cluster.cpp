#include "libalpa/cluster/cluster.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>

#include "libalpa/base/fingerprint.h"
#include "libalpa/base/toml_document.h"

namespace alpa {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6, kGibi = 1024.0 * 1024 * 1024;
constexpr double kMostDevices = 1 << 20;

Link read_link(const TomlTable& table) {
  return {kMicro * table.number("latency_us", at_least(0)), kGiga * table.number("gb_per_s", more_than(0))};
}

/// The bits, so that two numbers that print alike are not the same cluster.
std::string exact(double value) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }

std::string exact(const Link& link) { return exact(link.latency_s) + " " + exact(link.bytes_per_s); }

}  // namespace

Cluster read_cluster(const std::filesystem::path& path) {
  TomlDocument document = read_toml(path);
  const TomlTable root = document.root();
  Cluster cluster;
  cluster.name = root.string("name", path.stem().string());
  cluster.device = root.string("device");
  cluster.nodes = static_cast<int>(root.integer("nodes", between(1, kMostDevices)));
  cluster.devices_per_node = static_cast<int>(root.integer("devices_per_node", between(1, kMostDevices)));
  cluster.memory_bytes = std::llround(kGibi * root.number("memory_gib", between(1.0 / 1024, 1 << 20)));
  cluster.f32_flops_per_s = kTera * root.number("f32_tflops", more_than(0));
  cluster.bf16_flops_per_s = kTera * root.number("bf16_tflops", more_than(0));
  cluster.memory_bytes_per_s = kGiga * root.number("memory_gb_per_s", more_than(0));
  cluster.launch_s = kMicro * root.number("launch_us", at_least(0));
  cluster.within_node = read_link(root.table("within_node"));
  const std::optional<TomlTable> between_nodes = root.optional_table("between_nodes");
  if (between_nodes)
    cluster.between_nodes = read_link(*between_nodes);
  else if (cluster.nodes > 1)
    root.fault("missing key 'between_nodes', expected a table with latency_us and gb_per_s");
  else
    cluster.between_nodes = cluster.within_node;
  document.finish();
  return cluster;
}

std::string cluster_fingerprint(const Cluster& cluster) {
  return fingerprint(fmt::format("{}\n{}\n{} {} {}\n{} {} {} {}\n{}\n{}", cluster.name, cluster.device,
                                 cluster.nodes, cluster.devices_per_node, cluster.memory_bytes,
                                 exact(cluster.f32_flops_per_s), exact(cluster.bf16_flops_per_s),
                                 exact(cluster.memory_bytes_per_s), exact(cluster.launch_s),
                                 exact(cluster.within_node), exact(cluster.between_nodes)));
}

}  // namespace alpa
