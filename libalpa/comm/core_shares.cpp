#include "libalpa/comm/core_shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
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

std::vector<Cores> core_shares(const std::vector<Cores>& allowed,
                               const std::function<CorePlace(int core)>& place) {
  const auto overlaps = [](const Cores& some, const Cores& others) {
    return std::ranges::find_first_of(some, others) != some.end();
  };
  std::vector<Cores> shares;
  for (const Cores& mine : allowed) {
    const auto ranks = std::ranges::count(allowed, mine),
               earlier = std::count(allowed.begin(), allowed.begin() + std::ssize(shares), mine);
    const bool is_split = std::ranges::any_of(
        allowed, [&](const Cores& other) { return other != mine && overlaps(mine, other); });
    Cores& share = shares.emplace_back();
    if (is_split || std::ssize(mine) < ranks) continue;
    Cores cores = mine;
    std::ranges::sort(cores, {}, [&](int core) { return std::pair(place(core), core); });
    share.assign(cores.begin() + std::ssize(cores) * earlier / ranks,
                 cores.begin() + std::ssize(cores) * (earlier + 1) / ranks);
    std::ranges::sort(share);
  }
  return shares;
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
