#include "libalpa/profiler/machines.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

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

/// "left, right and 3 more"
std::string nodes_text(const std::vector<std::string>& nodes) {
  constexpr std::size_t most_named = 4;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), most_named));
  const std::string named = fmt::format("{}", fmt::join(nodes.begin(), end, ", "));
  return nodes.size() > most_named ? fmt::format("{} and {} more", named, nodes.size() - most_named) : named;
}

/// A profile is of one kind of machine.
void refuse_unlike(const std::vector<RankFacts>& ranks) {
  std::vector<std::pair<std::string, std::vector<std::string>>> nodes_with;  // each kind of device
  for (const RankFacts& rank : ranks) {
    const std::string device = kind_of_device(rank.device);
    auto known = std::ranges::find(nodes_with, device, [](const auto& each) { return each.first; });
    if (known == nodes_with.end()) known = nodes_with.insert(known, {device, {}});
    if (known->second.empty() || known->second.back() != rank.node_name)
      known->second.push_back(rank.node_name);
  }
  if (nodes_with.size() == 1) return;
  std::string text;
  for (const auto& [device, nodes] : nodes_with)
    text += fmt::format("{} {} on {}", text.empty() ? "" : ";", device, nodes_text(nodes));
  refuse("the machines of this job differ:" + text,
         "a job on each kind of node (srun --constraint), with a profile of its own; a cluster file with a "
         "[[part]] for each kind plans for all of them");
}

}  // namespace

Machines machines_of(const std::string& name, const std::vector<RankFacts>& ranks) {
  refuse_unlike(ranks);
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
