#include "libalpa/profiler/machines.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::allocation, what, hint);
}

/// Containers may share a host's name.
void make_distinct(std::vector<std::string>& names) {
  std::map<std::string, int> times;
  for (std::string& name : names)
    if (const int before = times[name]++; before > 0) name += fmt::format("#{}", before + 1);
}

}  // namespace

Machines machines_of(const std::string& name, const std::vector<RankFacts>& ranks) {
  Machines machines;
  machines.name = name;
  machines.device = kind_of_device(ranks.front().device);
  machines.devices_per_node = ranks.front().ranks_on_node;
  machines.memory_bytes = ranks.front().memory_bytes;
  std::map<std::string, std::size_t> owners;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankFacts& rank = ranks[r];
    if (rank.ranks_on_node != machines.devices_per_node)
      refuse(fmt::format("node {} has {} ranks, node {} has {}", ranks.front().node_name,
                         machines.devices_per_node, rank.node_name, rank.ranks_on_node),
             "srun --ntasks-per-node, the same number on every node");
    if (rank.node != static_cast<int>(r) / machines.devices_per_node)
      refuse(
          fmt::format("rank {} is on node {}: ranks do not stand in order of their nodes", r, rank.node_name),
          "srun --distribution=block, mpiexec -ppn");
    if (kind_of_device(rank.device) != machines.device)
      refuse(fmt::format("rank 0 has {}, rank {} has {}: plans are for equal devices", machines.device, r,
                         kind_of_device(rank.device)),
             "nodes of one kind (srun --constraint)");
    if (rank.device_is_its_own) {
      const auto [owner, is_first] = owners.emplace(rank.device, r);
      if (!is_first)
        refuse(fmt::format("ranks {} and {} share {}", owner->second, r, rank.device),
               "srun --gpus-per-task=1, or as many ranks per node as GPUs");
    }
    if (static_cast<int>(r) % machines.devices_per_node == 0) machines.node_names.push_back(rank.node_name);
    machines.memory_bytes = std::min(machines.memory_bytes, rank.memory_bytes);
  }
  machines.nodes = static_cast<int>(machines.node_names.size());
  make_distinct(machines.node_names);
  return machines;
}

}  // namespace alpa
