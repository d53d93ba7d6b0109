#include "libalpa/planner/search/stage_partition.h"

#include <algorithm>
#include <span>
#include <utility>

namespace alpa {
namespace {

/// Whether a way is as good as another in all respects.
bool beats(const StageWay& a, const StageWay& b) {
  return a.most_in_flight >= b.most_in_flight && a.seconds.first <= b.seconds.first &&
         a.seconds.others <= b.seconds.others && a.seconds.update <= b.seconds.update;
}

using Slowest = StageChoices::Slowest;

/// Where stages may end within a bound.
class Ends {
 public:
  Ends(const StageChoices& choices, double most_update)
      : layers_(choices.layers()), least_(layers_, choices.sizes().size(), infinity) {
    for (int first = 0; first < layers_; ++first)
      for (int end = layers_; end > first; --end)
        for (std::size_t s = 0; s < choices.sizes().size(); ++s) {
          double& least = least_.at(first, end, s);
          if (end < layers_) least = least_.at(first, end + 1, s);
          for (const StageSides& sides : kEverySides)
            for (const StageWay& way : choices.ways(first, end, s, sides))
              if (way.seconds.update <= most_update) least = std::min(least, way.seconds.others);
        }
  }

  /// The last one at which a stage may end whose further micro-batches take no more than that.
  int last(int first, std::size_t size, double most_others) const {
    int end = first;
    while (end < layers_ && least_.at(first, end + 1, size) <= most_others) ++end;
    return end;
  }

 private:
  int layers_;
  SpanTable<double> least_;  ///< no stage that ends there or later does all but its first micro-batch in less
};

/// Those stages of which none is slower than a bound, as of PipelineStages.
class StagesWithin {
 public:
  StagesWithin(const StageChoices& choices, const Ends& ends, const Slowest& bound)
      : choices_(choices), bound_(bound) {
    for (int first = 0; first < layers(); ++first)
      for (std::size_t s = 0; s < sizes().size(); ++s) last_end_.push_back(ends.last(first, s, bound.others));
  }

  int layers() const { return choices_.layers(); }
  int devices() const { return choices_.devices(); }
  int most_stages() const { return choices_.most_stages(); }
  const std::vector<int>& sizes() const { return choices_.sizes(); }
  int last_end(int first, std::size_t size) const {
    return last_end_[static_cast<std::size_t>(first) * sizes().size() + size];
  }
  bool allows(int left, int first, int end, std::size_t size) const {
    return std::ranges::any_of(kEverySides, [&](const StageSides& sides) {
      return choices_.fastest(left, first, end, size, sides, bound_) != nullptr;
    });
  }

 private:
  const StageChoices& choices_;
  const Slowest bound_;
  std::vector<int> last_end_;  ///< [first layer, size]
};

/// Whether there are devices enough for a pipeline of so many stages or more, wherever its neighbours lie.
bool suffice(const StagesWithin& stages, int least_stages) {
  FewestDevices fewest = none_left(stages);
  for (int left = 1; left <= stages.most_stages(); ++left) {
    fewest = with_one_more(stages, left, fewest);
    if (left >= least_stages && fewest[0] <= stages.devices()) return true;
  }
  return false;
}

/// The least sum of stages none of which takes longer than a bound.
class LeastSum {
 public:
  LeastSum(const StageChoices& choices, const Ends& ends, FillOptions options)
      : choices_(choices), ends_(ends), options_(std::move(options)) {}

  void fill(const Slowest& bound) {
    const auto before = [&](int left, int first, int end, std::size_t s) {
      const int size = choices_.sizes()[s];
      BySides<const StageWay*> ways;
      for (const StageSides& sides : kEverySides)
        ways[sides] = choices_.fastest(left, first, end, s, sides, bound);
      return [=, this](int devices, const Entry& after, Entry& with) {
        const StageWay* way = ways[choices_.places().sides(size, devices)];
        if (way && way->seconds.first + after.sum < with.sum)
          with = {way->seconds.first + after.sum, end, size, way->id};
      };
    };
    table_.fill(StagesWithin(choices_, ends_, bound), {.sum = 0}, options_, before);
  }

  /// None where there is none.
  std::vector<Partition::Stage> stages(int count) const {
    std::vector<Partition::Stage> stages;
    int first = 0, devices = choices_.devices();
    if (sum(count) == infinity) return stages;
    for (int left = count; left > 0; --left) {
      const Entry& entry = *table_.at(left, first, devices);
      stages.push_back({entry.end_layer, entry.devices, entry.way});
      first = stages.back().end_layer;
      devices -= stages.back().devices;
    }
    return stages;
  }

  double sum(int count) const { return sum_of(count, 0, choices_.devices()); }
  /// Of so many stages from one layer on.
  double sum_of(int left, int first, int devices) const {
    const Entry* known = table_.at(left, first, devices);
    return known ? known->sum : infinity;
  }

 private:
  struct Entry {
    double sum = infinity;
    int end_layer = 0, devices = 0, way = 0;  ///< of the first stage
    bool empty() const { return sum == infinity; }
  };

  const StageChoices& choices_;
  const Ends& ends_;
  const FillOptions options_;
  PipelineTable<Entry> table_;
};

/// Those of several slowest stages, each from when it is asked for on; the next ones are filled beside it.
class LeastSums {
 public:
  /// `slowest`: in the order in which they are asked for. Keeps references.
  LeastSums(const StageChoices& choices, const Ends& ends, double most_update,
            const std::vector<double>& slowest, const FillOptions& options)
      : choices_(choices), ends_(ends), most_update_(most_update), slowest_(slowest), options_(options) {}

  /// `most`: no slower ones are asked for, as far as is known by now.
  const LeastSum& of(std::size_t at, double most) {
    if (at >= begin_ + tables_.size()) fill_from(at, most);
    return tables_[at - begin_];
  }

 private:
  static constexpr int kAtOnce = 4;  ///< more may be of no use once the first are known

  void fill_from(std::size_t begin, double most) {
    int count = 1;
    while (count < std::min(kAtOnce, options_.threads) && begin + count < slowest_.size() &&
           slowest_[begin + count] <= most)
      ++count;
    begin_ = begin;
    const FillOptions of_each{std::max(1, options_.threads / count), options_.stops};
    tables_ = std::vector<LeastSum>(static_cast<std::size_t>(count), LeastSum(choices_, ends_, of_each));
    run_tasks(count, count, [&](int i) { tables_[i].fill({slowest_[begin + i], most_update_}); });
  }

  const StageChoices& choices_;
  const Ends& ends_;
  const double most_update_;
  const std::vector<double>& slowest_;
  const FillOptions& options_;
  std::size_t begin_ = 0;
  std::vector<LeastSum> tables_;  ///< from begin_ on
};

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
    const Ends ends(choices_, most_update);
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
  const Ends ends_;
  LeastSum rest_;
  double most_s_;
  const std::size_t count_;
  std::vector<Partition::Stage> stages_;  ///< that are being looked at
  std::vector<Partition> found_;          ///< a heap, the slowest first
  int visits_ = 0;
};

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
