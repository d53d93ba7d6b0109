#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/collective_traffic.h"
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
                       kNicsRange = {.low = 1, .high = kMostDevicesPerNode},
                       kServersRange = {.low = 0, .high = kMostNodes},
                       kSlowdownRange = {.low = 1, .high = 1e3};
inline constexpr int kMostParts = 16;  ///< of a cluster: prices are held for every run of them

/// The machines as numbers: nodes with equal numbers of devices, equal ones but for what `parts` say. Probed
/// by alpa-profile or read from a cluster file.
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
  /// How many times as long computation takes while a message or a collective of its device is under way
  /// beside it; 1: as long as alone, or not known.
  double overlap_slowdown = 1;
  /// Between a device's memory and its host's, each way, while all devices of a node move both ways; 0: not
  /// known, and nothing is moved.
  double host_bytes_per_s = 0;
  /// Of a node's own memory, for what rests there beside the devices'; 0: not known, and for the run to see.
  std::int64_t host_memory_bytes = 0;
  DeviceKind kind = DeviceKind::cpu;  ///< of each device: cpu or cuda
  /// Further nodes after these, like them, of which no device computes: they help to add up what all devices
  /// have (collective_traffic.h, sum_shares). Not of a cluster with parts.
  int servers = 0;
  /// Where nodes differ, those that are equal, as clusters of their own and in the order of their devices
  /// (cluster_parts.h). The figures above are then the worst of theirs, which hold for every device.
  std::vector<Cluster> parts = {};
  bool operator==(const Cluster&) const = default;

  int devices() const { return nodes * devices_per_node; }  ///< that compute
  int server_devices() const { return servers * devices_per_node; }
  /// Whether servers help with an all-reduce of so many bytes over such a group.
  bool serves(GroupShape group, double bytes) const {
    return servers > 0 && group.size() == devices() && is_worth_servers(group, bytes);
  }
  /// Consecutive devices of a node that send and receive over the same interface.
  int devices_per_nic() const { return (devices_per_node + nics_per_node - 1) / nics_per_node; }
  double flops_per_s(DType type) const {  ///< 0 as above
    return type == DType::bf16 ? bf16_flops_per_s : type == DType::f16 ? f16_flops_per_s : f32_flops_per_s;
  }
};

/// A cluster of these parts, of which there is one at least; all have as many devices on each node, and one
/// kind. One part alone is a cluster of equal nodes.
Cluster cluster_of_parts(const std::string& name, std::vector<Cluster> parts);

/// The first nodes of `devices` devices (0: all that are left), and `servers` more as servers. Throws
/// Error(usage) where there are not that many, they do not fill nodes, there is but one that computes, nodes
/// differ, or devices are GPUs, whose sums are NCCL's.
Cluster with_servers(Cluster, int devices, int servers);

/// Equal nodes with the worst figures of the parts from `first` up to `end`.
Cluster worst_of_parts(const Cluster&, int first, int end);

/// Equal nodes with the best figures of all parts, for bounds; itself where the nodes are equal.
Cluster best_of_parts(const Cluster&);

/// Reads a cluster file (TOML; configs/clusters/ has examples). Nodes that differ stand in tables [[part]],
/// each with a name and all that a file of equal nodes says, but for what the file says of all parts:
/// `devices_per_node`, `between_nodes`. Throws Error(input) with all faults.
Cluster read_cluster(const std::filesystem::path&);

/// What to plan for, beside a profile.
struct MachinesBesideProfile {
  Cluster cluster;
  /// How they differ from the measured ones, so that costs have to be extrapolated; "": in their number
  /// alone.
  std::string differences;
};

/// Reads a cluster file that says for which machines to plan by a profile of `measured` ones. Of such
/// machines it says `nodes` and `devices_per_node`, and may say `name`, `memory_gib`, and a link that was not
/// measured (between nodes where `measured` has one, within a node where its nodes have one device); what was
/// measured may be left out, and is kept where the file says the same but for a tenth. What differs by more,
/// other devices (of which the file has to say all) and parts are other machines. Throws Error(input) with
/// all faults of the file, and where one has CPUs and the other GPUs.
MachinesBesideProfile read_cluster_beside(const Cluster& measured, const std::filesystem::path&);

/// "1 node of 4 devices (CPU, 4 cores)"
std::string machines_text(const Cluster&);

/// A digest of all that planning depends on.
std::string cluster_fingerprint(const Cluster&);

}  // namespace alpa
