#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/cluster.h"

namespace alpa {

/// Other figures of the same machines: factors, 1 for what stays.
struct ClusterChange {
  double between_nodes = 1;  ///< rate of a network interface
  double within_nodes = 1;   ///< rate between two devices of a node
  double memory = 1;         ///< bytes that a program may use
  double compute = 1;        ///< arithmetic, streaming memory and launches alike
  std::string device = {};   ///< other devices on the same links, before the factors; "" for the same
  bool operator==(const ClusterChange&) const = default;
};

/// What the factors may be.
inline constexpr Range kFactorRange = {.low = 1e-6, .high = 1e6};

/// Latencies of links stay. Throws Error(usage) for a device that is not known (device_facts.h).
Cluster changed(Cluster, const ClusterChange&);

/// "between nodes x2, memory x0.5"; "as it is".
std::string change_text(const ClusterChange&);

/// One figure changed at a time: what a reader of a plan wants to know first.
std::vector<ClusterChange> standard_changes();

}  // namespace alpa
