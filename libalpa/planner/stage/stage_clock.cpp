#include "libalpa/planner/stage/stage_clock.h"

#include <algorithm>

namespace alpa {

StageClock::StageClock(const StageScope& scope) : scope_(scope) {
  bool has_measured = false;
  for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) {
    begin_.push_back(end_++);  // what arrives from other stages is there then
    const std::vector<NodeIndex> order = scope.order(segment);
    std::vector<int>&at = at_[static_cast<std::size_t>(segment)],
    &position = position_[static_cast<std::size_t>(segment)];
    at.assign(scope.graph().nodes.size(), -1);
    position = at;
    for (int place = 0; place < static_cast<int>(order.size()); ++place) {
      const NodeIndex n = order[place];
      if (segment == Phase::update && !has_measured && n > scope.planning().uses.norm) {
        measure();
        has_measured = true;
      }
      position[n] = place;
      if (scope.canonical_node(n) != n) continue;
      at[n] = end_;
      const auto [layer, is_new] = of_layer_.try_emplace({scope.node(n).layer, segment}, end_, end_);
      end_ = ends(n, segment);
      layer->second.second = end_;
    }
  }
  if (!has_measured) measure();
  ++end_;  // states go to other stages, and come from them
}

/// Sums of tied weights' gradients come before the norm, all that it does not need after it.
void StageClock::measure() {
  const GraphUses& uses = scope_.planning().uses;
  const std::vector<ValueIndex> none;
  for (const ValueIndex gradient : uses.norm < 0 ? none : scope_.node(uses.norm).operands) {
    const std::vector<NodeIndex>& users = uses.users_of(gradient);
    if (users.empty() || !scope_.has(users.back()) || scope_.canonical_node(users.back()) != users.back())
      continue;
    measures_[{users.back(), place_of(scope_.node(users.back()).operands, gradient)}] = end_++;
  }
}

int StageClock::runs(NodeIndex node, Phase segment) const {
  return at(node, segment) + 2 * static_cast<int>(scope_.node(node).operands.size());
}

int StageClock::ends(NodeIndex node, Phase segment) const {
  return settles(node, segment, static_cast<int>(scope_.node(node).results.size()));
}

std::pair<int, int> StageClock::of_layer(int layer, Phase segment) const {
  const auto at = of_layer_.find({scope_.canonical_layer(layer), segment});
  return at == of_layer_.end() ? std::pair(0, 0) : at->second;
}

}  // namespace alpa
