#include "libalpa/cluster/changed_cluster.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/cluster/device_facts.h"

namespace alpa {
namespace {

void put_device(Cluster& cluster, const std::string& word) {
  const DeviceFigures* figures = device_figures(word);
  if (figures == nullptr) {
    const std::string near = nearest_name(word, device_words());
    throw Error(ErrorKind::usage, fmt::format("device '{}' is not known", word),
                fmt::format("{}one of {}; of others write a cluster file",
                            near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                            fmt::join(device_words(), ", ")));
  }
  cluster.device = figures->device;
  cluster.kind = DeviceKind::cuda;
  cluster.memory_bytes = std::llround(figures->memory_gib * (1 << 30));
  cluster.f32_flops_per_s = 1e12 * figures->f32_tflops;
  cluster.bf16_flops_per_s = 1e12 * figures->bf16_tflops;
  cluster.f16_flops_per_s = 1e12 * figures->f16_tflops;
  cluster.memory_bytes_per_s = 1e9 * figures->memory_gb_per_s;
  cluster.launch_s = 1e-6 * figures->launch_us;
  cluster.host_bytes_per_s = 1e9 * figures->host_gb_per_s;
  cluster.overlap_slowdown = 1;  // was measured on the others
  cluster.servers = 0;           // of GPUs there are none
}

}  // namespace

Cluster changed(Cluster cluster, const ClusterChange& change) {
  for (Cluster& part : cluster.parts) part = changed(std::move(part), change);
  if (!change.device.empty()) put_device(cluster, change.device);
  cluster.between_nodes.bytes_per_s *= change.between_nodes;
  cluster.within_node.bytes_per_s *= change.within_nodes;
  cluster.memory_bytes = std::llround(static_cast<double>(cluster.memory_bytes) * change.memory);
  cluster.f32_flops_per_s *= change.compute;
  cluster.bf16_flops_per_s *= change.compute;
  cluster.f16_flops_per_s *= change.compute;
  cluster.memory_bytes_per_s *= change.compute;
  cluster.launch_s /= change.compute;
  return cluster;
}

std::string change_text(const ClusterChange& change) {
  std::vector<std::string> words;
  if (!change.device.empty()) words.push_back("device " + change.device);
  const auto factor = [&](const char* what, double by) {
    if (by != 1) words.push_back(fmt::format("{} x{}", what, by));
  };
  factor("between nodes", change.between_nodes);
  factor("within nodes", change.within_nodes);
  factor("memory", change.memory);
  factor("compute", change.compute);
  return words.empty() ? "as it is" : fmt::format("{}", fmt::join(words, ", "));
}

std::vector<ClusterChange> standard_changes() {
  return {{.between_nodes = 2}, {.between_nodes = 0.5}, {.within_nodes = 2}, {.memory = 2}, {.compute = 2}};
}

}  // namespace alpa
