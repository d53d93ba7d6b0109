#include "libalpa/planner/stage_clock.h"

#include <algorithm>

namespace alpa {

StageClock::StageClock(const StageScope& scope) : scope_(scope) {
  for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) {
    begin_.push_back(end_++);  // what arrives from other stages is there then
    const std::vector<int> order = scope.order(segment);
    if (segment == Phase::update)
      for (const int n : order)
        for (const int operand : scope.planning().uses.measured[static_cast<std::size_t>(n)])
          if (scope.canonical_node(n) == n) measures_[{n, operand}] = end_++;
    for (int place = 0; place < static_cast<int>(order.size()); ++place) {
      const int n = order[static_cast<std::size_t>(place)];
      position_[{n, segment}] = place;
      if (scope.canonical_node(n) != n) continue;
      at_[{n, segment}] = end_;
      const auto [layer, is_new] = of_layer_.try_emplace({scope.node(n).layer, segment}, end_, end_);
      end_ = ends(n, segment);
      layer->second.second = end_;
    }
  }
}

int StageClock::runs(int node, Phase segment) const {
  return at(node, segment) + 2 * static_cast<int>(scope_.node(node).operands.size());
}

int StageClock::ends(int node, Phase segment) const {
  return settles(node, segment, static_cast<int>(scope_.node(node).results.size()));
}

std::pair<int, int> StageClock::of_layer(int layer, Phase segment) const {
  return of_layer_.at({scope_.canonical_layer(layer), segment});
}

}  // namespace alpa
