#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "libalpa/base/constraint.h"
#include "libalpa/base/device_kind.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/tensor_type.h"

namespace alpa {

/// One way between two devices: a message of b bytes takes latency_s + b / bytes_per_s.
struct Link {
  double latency_s = 0;
  double bytes_per_s = 0;
  bool operator==(const Link&) const = default;
};

/// What the numbers of a cluster may be, in SI units, in whichever file they stand: any machine there is or
/// was, and none that makes a predicted time infinite.
inline constexpr Range kNodeRange = {.low = 1, .high = kMostNodes},
                       kDevicesPerNodeRange = {.low = 1, .high = kMostDevicesPerNode},
                       kMemoryRange = {.low = 1 << 20, .high = 1LL << 50},
                       kTimeRange = {.low = 0, .high = 1e3}, kRateRange = {.low = 1, .high = 1e18},
                       kNicsRange = {.low = 1, .high = kMostDevicesPerNode};

/// The machines as numbers: equal nodes with equal devices. Probed by alpa-profile or read from a cluster
/// file.
struct Cluster {
  std::string name;    ///< is_name(), as is `device`
  std::string device;  ///< in words, e.g. "NVIDIA V100 16 GB"
  int nodes = 1;
  int devices_per_node = 1;
  std::int64_t memory_bytes = 0;    ///< a program may use, per device
  double f32_flops_per_s = 0;       ///< attainable by large matrix products, per device
  double bf16_flops_per_s = 0;      ///< likewise; 0: the devices do not compute in it
  double f16_flops_per_s = 0;       ///< likewise
  double memory_bytes_per_s = 0;    ///< attainable by streaming kernels, per device
  double launch_s = 0;              ///< fixed cost of one operator
  Link within_node, between_nodes;  ///< between two devices, which have it to themselves
  int nics_per_node = 1;  ///< network interfaces, each of the rate between nodes, of as many devices each
  DeviceKind kind = DeviceKind::cpu;  ///< of each device: cpu or cuda
  bool operator==(const Cluster&) const = default;

  int devices() const { return nodes * devices_per_node; }
  /// Consecutive devices of a node that send and receive over the same interface.
  int devices_per_nic() const { return (devices_per_node + nics_per_node - 1) / nics_per_node; }
  double flops_per_s(DType type) const {  ///< 0 as above
    return type == DType::bf16 ? bf16_flops_per_s : type == DType::f16 ? f16_flops_per_s : f32_flops_per_s;
  }
};

/// Reads a cluster file (TOML; configs/clusters/ has examples). Throws Error(input) with all faults.
Cluster read_cluster(const std::filesystem::path&);

/// Reads a cluster file that says how many of the machines of a profile there are. It must say `nodes` and
/// `devices_per_node`, and may say `name`, `memory_gib`, and a link that was not measured (between nodes
/// where `measured` has one, within a node where its nodes have one device). What else it says was measured:
/// it may be left out, and Error(input) names each figure that differs from the measured one by more than a
/// tenth. Returns `measured` with what the file may say. Throws Error(input) with all faults of the file.
Cluster read_cluster_of(const Cluster& measured, const std::filesystem::path&);

/// A digest of all that planning depends on.
std::string cluster_fingerprint(const Cluster&);

}  // namespace alpa
