#include "libalpa/solver/selection/neighbourhood_lanes.h"

#include <algorithm>
#include <cmath>

#include "libalpa/base/parallel_tasks.h"

namespace alpa {

NeighbourhoodLanes::NeighbourhoodLanes(const NeighbourhoodView& view, int count, std::uint64_t seed)
    : view_(view) {
  for (int k = 0; k < count; ++k)
    lanes_.push_back(std::make_unique<NeighbourhoodLane>(view, philox_key(seed, k)));
}

void NeighbourhoodLanes::start_from(const std::vector<int>& choice) {
  for (const auto& lane : lanes_) lane->start_from(choice);
}

bool NeighbourhoodLanes::walk(double work, int threads, Incumbent& incumbent, const Deadline& deadline) {
  std::vector<std::vector<Switches>> steps(lanes_.size());
  run_tasks(static_cast<int>(lanes_.size()), threads,
            [&](int k) { steps[k] = lanes_[k]->walk(work, deadline); });
  const auto best = std::min_element(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) {
    return a->objective() < b->objective();
  });
  for (std::size_t k = 0; k < lanes_.size(); ++k)
    for (const Switches& step : steps[k])
      if (lanes_[k] != *best) (*best)->follow(step);
  const double before = incumbent.cost;
  for (const auto& lane : lanes_)
    if (lane->best().exists())
      incumbent.offer(lane->best().choice, network_cost(view_.network, lane->best().choice));
  const std::vector<int> together = (*best)->choice();
  start_from(together);
  return incumbent.cost < before - 1e-12 * std::abs(before);
}

}  // namespace alpa
