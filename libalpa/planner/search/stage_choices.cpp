#include "libalpa/planner/search/stage_choices.h"

#include <algorithm>

namespace alpa {
namespace {

/// Whether a way is as good as another in all respects.
bool beats(const StageWay& a, const StageWay& b) {
  return a.most_in_flight >= b.most_in_flight && a.seconds.first <= b.seconds.first &&
         a.seconds.others <= b.seconds.others && a.seconds.update <= b.seconds.update;
}

}  // namespace

double pipeline_seconds(const std::vector<StageSeconds>& stages) {
  double sum = 0, slowest = 0, update = 0;
  for (const StageSeconds& stage : stages) {
    sum += stage.first;
    slowest = std::max(slowest, stage.others);
    update = std::max(update, stage.update);
  }
  return sum + slowest + update;
}

StageChoices::StageChoices(int layers, const StagePlaces& places, std::vector<int> sizes,
                           std::vector<int> in_flight)
    : layers_(layers),
      places_(places),
      sizes_(std::move(sizes)),
      in_flight_(std::move(in_flight)),
      ways_(layers, sizes_.size()) {}

std::size_t StageChoices::index_of(int size) const {
  return static_cast<std::size_t>(std::ranges::find(sizes_, size) - sizes_.begin());
}

void StageChoices::offer(int first, int end, int size, const StageSides& sides, StageWay way) {
  std::vector<StageWay>& known = ways_.at(first, end, index_of(size))[sides];
  for (const StageWay& other : known)
    if (beats(other, way)) return;
  std::erase_if(known, [&](const StageWay& other) { return beats(way, other); });
  known.push_back(way);
}

const StageWay* StageChoices::fastest(int left, int first, int end, std::size_t size, const StageSides& sides,
                                      const Slowest& bound) const {
  const StageWay* best = nullptr;
  for (const StageWay& way : ways(first, end, size, sides))
    if (way.most_in_flight >= in_flight_[left] && way.seconds.others <= bound.others &&
        way.seconds.update <= bound.update && (!best || way.seconds.first < best->seconds.first))
      best = &way;
  return best;
}

std::vector<double> StageChoices::distinct(double StageSeconds::*part) const {
  std::vector<double> distinct;
  for (const BySides<std::vector<StageWay>>& of_span : ways_.all())
    for (const std::vector<StageWay>& ways : of_span)
      for (const StageWay& way : ways) distinct.push_back(way.seconds.*part);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

}  // namespace alpa
