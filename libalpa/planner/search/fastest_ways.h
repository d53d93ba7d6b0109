#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "libalpa/planner/search/stage_choices.h"

namespace alpa {

/// Of many ways to run a stage, for some numbers of micro-batches in flight, those with the fastest step, the
/// fastest micro-batch and the fastest update.
class FastestWays {
 public:
  /// `in_flight`: all that stages may need, as of StageChoices.
  explicit FastestWays(const std::vector<int>& in_flight) {
    constexpr double kApart = 1.2;
    for (int needed = std::ranges::max(in_flight); needed > 0; needed = static_cast<int>(needed / kApart))
      of_needed_.push_back({needed, {}});
  }

  void add(const StageWay& way) {
    const auto at = std::ranges::find_if(
        of_needed_, [&](const OfNeeded& each) { return way.most_in_flight >= each.in_flight; });
    if (at == of_needed_.end()) return;
    for (std::size_t i = 0; i < kParts.size(); ++i)
      if (kParts[i](way.seconds) < kParts[i](at->best[i].seconds)) at->best[i] = way;
  }

  std::vector<StageWay> all() const {
    std::vector<StageWay> all;
    for (const OfNeeded& each : of_needed_)
      for (const StageWay& way : each.best)
        if (way.most_in_flight > 0) all.push_back(way);
    return all;
  }

 private:
  static constexpr std::array kParts{
      +[](const StageSeconds& seconds) { return step_s(seconds); },
      +[](const StageSeconds& seconds) { return seconds.first; },
      +[](const StageSeconds& seconds) { return seconds.first < infinity ? seconds.update : infinity; }};
  struct OfNeeded {
    int in_flight = 1;  ///< and less than the next one's
    std::array<StageWay, kParts.size()> best;
  };

  std::vector<OfNeeded> of_needed_;  ///< the most in flight first
};

}  // namespace alpa
