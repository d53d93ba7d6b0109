#include "libalpa/planner/search/mesh_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace alpa {

std::int64_t live_bytes(const StageRequest& request, const StageSolution& solution) {
  return solution.resident_bytes + request.in_flight * solution.micro_batch_bytes;
}

std::vector<std::vector<std::size_t>> stages_on_meshes(const std::vector<StageRequest>& requests) {
  std::vector<std::vector<std::size_t>> on;
  for (std::size_t s = 0; s < requests.size(); ++s) {
    const auto same = std::ranges::find_if(on, [&](const std::vector<std::size_t>& stages) {
      return requests[stages.front()].first_device == requests[s].first_device;
    });
    if (same == on.end())
      on.push_back({s});
    else
      same->push_back(s);
  }
  return on;
}

bool MeshMemory::is_short() const {
  return std::ranges::any_of(
      stages, [&](std::size_t s) { return !solutions[s].feasible && solutions[s].least_memory > 0; });
}

bool MeshMemory::make_room() const {
  if (stages.size() == 1) return false;
  std::map<std::size_t, std::int64_t> reserves;
  for (const std::size_t s : stages) {
    if (solutions[s].feasible || solutions[s].least_memory == 0) continue;
    const std::int64_t needed = solutions[s].least_memory - requests[s].reserve_bytes;
    const std::int64_t reserve = limit - needed - needed / 64;  // it is what it needs at least
    if (reserve < 0 || reserve >= requests[s].reserve_bytes) return false;
    reserves[s] = reserve;
  }
  for (const auto& [s, reserve] : reserves) requests[s].reserve_bytes = reserve;
  return !reserves.empty();
}

void MeshMemory::leave(std::int64_t over, bool is_first) const {
  const auto unused = [&](std::size_t s) { return limit - live_bytes(requests[s], solutions[s]); };
  if (stages.size() == 1) {
    std::int64_t& reserve = requests[stages.front()].reserve_bytes;
    reserve = std::max(reserve + over + over / 4, is_first ? 0 : over + unused(stages.front()));
    return;
  }
  const auto lasting = [&](std::size_t s) {
    return static_cast<double>(solutions[s].lasting_bytes +
                               requests[s].in_flight * solutions[s].micro_batch_bytes);
  };
  double all = 0;
  for (const std::size_t s : stages) all += lasting(s);
  for (const std::size_t s : stages) {
    const double share = all > 0 ? lasting(s) / all : 0;
    requests[s].reserve_bytes = unused(s) + std::llround(1.25 * share * static_cast<double>(over));
  }
}

}  // namespace alpa
