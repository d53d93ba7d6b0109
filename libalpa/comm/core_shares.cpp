#include "libalpa/comm/core_shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <string>

namespace alpa {
namespace {

int number_in(const std::string& file, int otherwise) {
  std::ifstream in(file);
  int number = otherwise;
  return in >> number ? number : otherwise;
}

}  // namespace

CorePlace core_place(int core) {
  const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", core);
  return {number_in(topology + "physical_package_id", 0), number_in(topology + "core_id", core)};
}

CoreShare core_share(const std::vector<Cores>& allowed, int rank,
                     const std::function<CorePlace(int core)>& place) {
  std::map<Cores, int> ranks_on;
  for (const Cores& cores : allowed) ++ranks_on[cores];
  const auto is_shared_in_part = [&](const Cores& cores) {
    return std::ranges::any_of(ranks_on, [&](const auto& other) {
      return other.first != cores && std::ranges::find_first_of(cores, other.first) != cores.end();
    });
  };
  CoreShare share;
  share.least = std::numeric_limits<int>::max();
  for (const auto& [cores, ranks] : ranks_on)
    share.least =
        std::min(share.least, is_shared_in_part(cores) ? 0 : static_cast<int>(cores.size()) / ranks);
  const Cores& mine = allowed[static_cast<std::size_t>(rank)];
  const int ranks = ranks_on[mine];
  if (is_shared_in_part(mine) || std::ssize(mine) < ranks) return share;
  share.own = mine;
  if (ranks == 1) return share;
  std::vector<std::pair<CorePlace, int>> placed;
  for (const int core : mine) placed.push_back({place(core), core});
  std::ranges::sort(placed);
  const auto earlier = std::count(allowed.begin(), allowed.begin() + rank, mine);
  const auto edge = [&](std::ptrdiff_t of) { return std::ssize(placed) * of / ranks; };
  share.own.clear();
  for (auto at = edge(earlier); at < edge(earlier + 1); ++at)
    share.own.push_back(placed[static_cast<std::size_t>(at)].second);
  std::ranges::sort(share.own);
  return share;
}

Cores cores_in(const cpu_set_t& set) {
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

void keep_to(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace alpa
