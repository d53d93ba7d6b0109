#include "libalpa/planner/search/space_bounds.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace alpa {

StepBound& SearchedSpaces::bound(const PlanSpace& space, int micro_batches) {
  auto known = std::ranges::find(spaces_, space, &SpaceBounds::space);
  if (known == spaces_.end()) known = spaces_.insert(known, {space});
  return known->of_count[micro_batches] = {0, 0, 0};
}

std::vector<int> SearchedSpaces::counts() const {
  const auto counts = std::views::keys(spaces_.front().of_count);
  return {counts.begin(), counts.end()};
}

std::vector<SpaceBounds> SearchedSpaces::widest() const {
  std::vector<SpaceBounds> widest;
  std::set<int> covered;
  for (SpaceBounds bounds : std::views::reverse(spaces_)) {
    std::erase_if(bounds.of_count,
                  [&](const auto& of) { return of.second.step_s == 0 || covered.contains(of.first); });
    for (const auto& [count, bound] : bounds.of_count) covered.insert(count);
    if (!bounds.of_count.empty()) widest.push_back(std::move(bounds));
  }
  return widest;
}

StepBound least_bound(const std::vector<SpaceBounds>& spaces) {
  StepBound least;
  for (const SpaceBounds& bounds : spaces)
    for (const auto& [count, bound] : bounds.of_count)
      least = {std::min(least.step_s, bound.step_s), std::min(least.of_first_s, bound.of_first_s),
               std::min(least.work_s, bound.work_s)};
  return least;
}

}  // namespace alpa
