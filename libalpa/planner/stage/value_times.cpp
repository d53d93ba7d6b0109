#include "libalpa/planner/stage/value_times.h"

#include <algorithm>

namespace alpa {

Ticks united(Ticks ticks) {
  std::ranges::sort(ticks);
  Ticks united;
  for (const auto& [begin, end] : ticks) {
    if (begin >= end) continue;
    if (!united.empty() && begin <= united.back().second)
      united.back().second = std::max(united.back().second, end);
    else
      united.push_back({begin, end});
  }
  return united;
}

StageScope::Use ValueTimes::first_use(ValueIndex v, Phase segment) const {
  return std::ranges::min(scope_.uses_in(v, segment), {}, [&](const StageScope::Use& use) {
    return std::pair(clock_.position(use.node, segment), use.operand);
  });
}

StageScope::Use ValueTimes::last_use(ValueIndex v, Phase segment) const {
  return std::ranges::max(scope_.uses_in(v, segment), {}, [&](const StageScope::Use& use) {
    return std::pair(clock_.position(use.node, segment), use.operand);
  });
}

Moment ValueTimes::start_of_uses(ValueIndex v, Phase segment) const {
  if (!scope_.uses_in(v, segment).empty()) {
    const StageScope::Use first = first_use(v, segment);
    return {clock_.starts(first.node, segment, first.operand), scope_.node(first.node).layer};
  }
  const NodeIndex maker = scope_.value(v).producer;
  if (!scope_.made_in(v, segment)) return {clock_.begin(segment), 0};
  return {clock_.ends(maker, segment), scope_.node(maker).layer};
}

Ticks ValueTimes::between(Moment begin, Moment end, Phase segment) const {
  if (begin.tick <= end.tick || begin.layer == end.layer) return {{begin.tick, end.tick}};
  return {{begin.tick, clock_.of_layer(begin.layer, segment).second},
          {clock_.of_layer(end.layer, segment).first, end.tick}};
}

bool ValueTimes::used_by_equal_layers(ValueIndex v, int layer, Phase segment) const {
  return std::ranges::any_of(scope_.uses_in(v, segment), [&](const StageScope::Use& use) {
    const int other = scope_.node(use.node).layer;
    return other != layer && scope_.canonical_layer(other) == scope_.canonical_layer(layer);
  });
}

}  // namespace alpa
