#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace alpa {

/// What one rank reports of itself.
struct RankFacts {
  int node = 0;
  int ranks_on_node = 1;
  std::string node_name;
  std::string device;              ///< Device::description()
  bool device_is_its_own = false;  ///< a GPU, which ranks must not share
  std::int64_t memory_bytes = 0;   ///< that its program may use
};

/// The machines of a job before anything was timed.
struct Machines {
  std::string name;
  std::string device;  ///< in words, without what distinguishes two of a kind
  int nodes = 1;
  int devices_per_node = 1;
  std::int64_t memory_bytes = 0;        ///< per device, of the one that has least
  std::vector<std::string> node_names;  ///< all different
};

/// Puts together what the ranks reported, in rank order. Throws Error(allocation) where nodes have different
/// numbers of ranks, ranks do not stand in order of their nodes, two ranks share a GPU, or devices differ: it
/// then names the nodes that have each kind.
Machines machines_of(const std::string& name, const std::vector<RankFacts>& ranks);

}  // namespace alpa
