#include "libalpa/planner/search/stage_partition.h"

#include <algorithm>
#include <span>

#include "libalpa/planner/search/least_sums.h"

namespace alpa {
namespace {

/// Whether there are devices enough for a pipeline of so many stages or more, wherever its neighbours lie.
bool suffice(const StagesWithin& stages, int least_stages) {
  FewestDevices fewest = none_left(stages);
  for (int left = 1; left <= stages.most_stages(); ++left) {
    fewest = with_one_more(stages, left, fewest);
    if (left >= least_stages && fewest[0] <= stages.devices()) return true;
  }
  return false;
}

/// What each of the stages takes.
std::vector<StageSeconds> seconds_of(const StageChoices& choices,
                                     const std::vector<Partition::Stage>& stages) {
  std::vector<StageSeconds> seconds;
  int first = 0, devices = choices.devices();
  for (const Partition::Stage& stage : stages) {
    const std::vector<StageWay>& ways = choices.ways_on(stage.devices, first, stage.end_layer,
                                                        choices.places().sides(stage.devices, devices));
    seconds.push_back(std::ranges::find(ways, stage.way, &StageWay::id)->seconds);
    first = stage.end_layer;
    devices -= stage.devices;
  }
  return seconds;
}

/// The best partition for each number of stages.
class BestPartitions {
 public:
  BestPartitions(const StageChoices& choices, int least_stages, double alike, const FillOptions& options)
      : choices_(choices),
        least_stages_(std::max(1, least_stages)),
        alike_(alike),
        options_(options),
        others_(choices.distinct(&StageSeconds::others)),
        best_(static_cast<std::size_t>(choices.most_stages()) + 1, Partition{{}, infinity}) {}

  /// `updates`: all that the slowest may take, ascending.
  void look_for(std::span<const double> updates) {
    look_between(updates.first(updates.size() - 1), look_within(updates.back()));
  }

  std::vector<Partition> found() {
    std::erase_if(best_, [](const Partition& partition) { return partition.seconds == infinity; });
    for (Partition& partition : best_) {
      const std::vector<StageSeconds> seconds = seconds_of(choices_, partition.stages);
      for (std::size_t s = 0; s < seconds.size(); ++s) partition.stages[s].seconds = seconds[s];
    }
    return std::move(best_);
  }

 private:
  static constexpr double kWorthKnowing = 1.05;

  /// For slowest updates that are less than one for which the rest takes `rest_s`; for them it takes no less.
  void look_between(std::span<const double> updates, double rest_s) {
    if (updates.empty() || options_.stopped() || updates.front() + rest_s >= best_s_ * (1 - alike_)) return;
    // The slowest of those above does no better than any within what counts as equal.
    const std::size_t middle = updates.size() / 2;
    const double of_middle_s = look_within(updates[middle]);
    look_between(updates.subspan(middle + 1), rest_s);
    look_between(updates.first(middle), of_middle_s);
  }

  /// All but the update of the best partition with updates within a bound: less than that is not possible.
  double look_within(double most_update) {
    const StageEnds ends(choices_, most_update);
    const auto least = std::partition_point(others_.begin(), others_.end(), [&](double others) {
      return !options_.stopped() &&
             !suffice(StagesWithin(choices_, ends, {others, most_update}), least_stages_);
    });
    double rest_s = infinity;
    const std::vector<double> slowest = slowest_from(least);
    LeastSums sums(choices_, ends, most_update, slowest, options_);
    for (std::size_t at = 0; at < slowest.size() && !options_.stopped(); ++at) {
      const double others = slowest[at], most_s = best_s_ * kWorthKnowing;
      if (others > std::min(rest_s, most_s)) break;
      if (most_s < infinity && least_sum_ == 0) {
        LeastSum table(choices_, ends, options_);
        table.fill({most_s, most_update});
        least_sum_ = least_sum(table);
      }
      if (others + least_sum_ > most_s) break;
      const LeastSum& table = sums.of(at, std::min(rest_s, most_s - least_sum_));
      for (int count = least_stages_; count <= choices_.most_stages(); ++count) {
        if (table.sum(count) == infinity) continue;
        rest_s = std::min(rest_s, table.sum(count) + others);
        std::vector<Partition::Stage> stages = table.stages(count);
        const double seconds = pipeline_seconds(seconds_of(choices_, stages));
        if (seconds < best_[count].seconds) best_[count] = {std::move(stages), seconds};
        best_s_ = std::min(best_s_, seconds);
      }
    }
    return rest_s;
  }

  /// Of those that are alike the last, which allows the most.
  std::vector<double> slowest_from(std::vector<double>::const_iterator others) const {
    std::vector<double> slowest;
    double group = 0;
    for (; others != others_.end(); ++others) {
      if (group == 0) group = *others;
      if (others + 1 != others_.end() && others[1] <= group * (1 + alike_)) continue;
      slowest.push_back(*others);
      group = 0;
    }
    return slowest;
  }

  double least_sum(const LeastSum& table) const {
    double least = infinity;
    for (int count = least_stages_; count <= choices_.most_stages(); ++count)
      least = std::min(least, table.sum(count));
    return least;
  }

  const StageChoices& choices_;
  const int least_stages_;
  const double alike_;
  const FillOptions& options_;
  const std::vector<double> others_;
  std::vector<Partition> best_;  ///< [stages]
  double best_s_ = infinity;
  double least_sum_ = 0;  ///< of what is worth knowing, with all that updates may take
};

/// Looks at partitions stage by stage, and leaves those whose rest cannot be fast enough.
class NearPartitions {
 public:
  NearPartitions(const StageChoices& choices, double most_s, std::size_t count, const FillOptions& options)
      : choices_(choices),
        ends_(choices, most_s),
        rest_(choices, ends_, options),
        most_s_(most_s),
        count_(count) {
    rest_.fill({most_s, most_s});
  }

  void look_for(int stages) {
    visits_ = 0;
    extend(stages, 0, choices_.devices());
  }

  std::vector<Partition> found() {
    std::ranges::sort_heap(found_, {}, &Partition::seconds);
    return std::move(found_);
  }

 private:
  static constexpr int kMostVisits = 20'000;  ///< of one number of stages

  void extend(int left, int first, int devices) {
    if (left == 0) return keep();
    for (std::size_t s = 0; s < choices_.sizes().size(); ++s) {
      const int size = choices_.sizes()[s];
      const StageSides sides = choices_.places().sides(size, devices);
      for (int end = first + 1, last = ends_.last(first, s, most_s_); end <= last; ++end)
        for (const StageWay& way : choices_.ways(first, end, s, sides)) {
          if (way.most_in_flight < choices_.in_flight(left)) continue;
          stages_.push_back({end, size, way.id, way.seconds});
          const double rest_s = rest_.sum_of(left - 1, end, devices - size);
          if (seconds() + rest_s < most_s_ && ++visits_ < kMostVisits) extend(left - 1, end, devices - size);
          stages_.pop_back();
        }
    }
  }

  double seconds() const {
    std::vector<StageSeconds> each;
    for (const Partition::Stage& stage : stages_) each.push_back(stage.seconds);
    return pipeline_seconds(each);
  }

  void keep() {
    found_.push_back({stages_, seconds()});
    std::ranges::push_heap(found_, {}, &Partition::seconds);
    if (found_.size() <= count_) return;
    std::ranges::pop_heap(found_, {}, &Partition::seconds);
    found_.pop_back();
    most_s_ = found_.front().seconds;
  }

  const StageChoices& choices_;
  const StageEnds ends_;
  LeastSum rest_;
  double most_s_;
  const std::size_t count_;
  std::vector<Partition::Stage> stages_;  ///< that are being looked at
  std::vector<Partition> found_;          ///< a heap, the slowest first
  int visits_ = 0;
};

}  // namespace

std::vector<Partition> best_partitions(const StageChoices& choices, int least_stages, double alike,
                                       const FillOptions& options) {
  BestPartitions best(choices, least_stages, alike, options);
  const std::vector<double> updates = choices.distinct(&StageSeconds::update);
  if (!updates.empty()) best.look_for(updates);
  return best.found();
}

std::vector<Partition> near_partitions(const StageChoices& choices, int least_stages, double most_s,
                                       std::size_t count, const FillOptions& options) {
  NearPartitions near(choices, most_s, count, options);
  for (int stages = std::max(1, least_stages); stages <= choices.most_stages(); ++stages)
    near.look_for(stages);
  return near.found();
}

}  // namespace alpa
