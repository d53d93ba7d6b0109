#include "libalpa/planner/search/stage_partition.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "libalpa/base/infinity.h"

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
  Ends(const StageChoices& choices, double most_update) : choices_(choices) {
    const std::size_t layers = static_cast<std::size_t>(choices.layers()), sizes = choices.sizes().size();
    least_.assign(layers * (layers + 2) * sizes, infinity);
    for (int first = 0; first < choices.layers(); ++first)
      for (int end = choices.layers(); end > first; --end)
        for (std::size_t s = 0; s < sizes; ++s) {
          double& least = least_[place(first, end, s)];
          least = least_[place(first, end + 1, s)];
          for (const StageWay& way : choices.ways(first, end, s))
            if (way.seconds.update <= most_update) least = std::min(least, way.seconds.others);
        }
  }

  /// No stage that ends there or later does all but its first micro-batch in less.
  double least_others(int first, int end, std::size_t size) const { return least_[place(first, end, size)]; }

 private:
  std::size_t place(int first, int end, std::size_t size) const {
    const auto layers = static_cast<std::size_t>(choices_.layers());
    return (static_cast<std::size_t>(first) * (layers + 2) + static_cast<std::size_t>(end)) *
               choices_.sizes().size() +
           size;
  }

  const StageChoices& choices_;
  std::vector<double> least_;
};

/// [first layer] The fewest devices for so many stages, the last of all, none of which is slower than a
/// bound.
using Fewest = std::vector<int>;

Fewest none_left(const StageChoices& choices) {
  Fewest fewest(static_cast<std::size_t>(choices.layers()) + 1, choices.devices() + 1);
  fewest.back() = 0;
  return fewest;
}

/// With another one before those: `left` in all.
Fewest one_more(const StageChoices& choices, const Ends& ends, const Slowest& bound, int left,
                const Fewest& after) {
  Fewest fewest(after.size(), choices.devices() + 1);
  for (int first = 0; first + left <= choices.layers(); ++first)
    for (std::size_t s = 0; s < choices.sizes().size(); ++s)
      for (int end = first + 1; end <= choices.layers() && ends.least_others(first, end, s) <= bound.others;
           ++end) {
        const int devices = choices.sizes()[s] + after[end];
        if (devices < fewest[first] && choices.fastest(left, first, end, s, bound)) fewest[first] = devices;
      }
  return fewest;
}

/// Whether there are devices enough for a pipeline of so many stages or more.
bool suffice(const StageChoices& choices, const Ends& ends, const Slowest& bound, int least_stages) {
  Fewest fewest = none_left(choices);
  for (int left = 1; left <= choices.most_stages(); ++left) {
    fewest = one_more(choices, ends, bound, left, fewest);
    if (left >= least_stages && fewest[0] <= choices.devices()) return true;
  }
  return false;
}

/// The least sum of stages none of which takes longer than a bound. Near the least bound there are few
/// devices to spare, so of all numbers of devices that could be left few need be looked at.
class LeastSum {
 public:
  LeastSum(const StageChoices& choices, const Ends& ends, const std::function<bool()>& stops)
      : choices_(choices), ends_(ends), stops_(stops), unit_(choices.devices()) {
    for (const int size : choices.sizes()) unit_ = std::gcd(unit_, size);
  }

  void fill(const Slowest& bound) {
    const Fewest before = fewest_before(bound);
    Fewest fewest = none_left(choices_);
    rows_.assign(1, std::vector<Row>(fewest.size()));
    rows_[0].back() = {0, {Entry{0, {}}}};
    for (int left = 1; left <= choices_.most_stages() && !stopped(); ++left) {
      fewest = one_more(choices_, ends_, bound, left, fewest);
      rows_.emplace_back(fewest.size());
      for (int first = 0; first + left <= choices_.layers() && !stopped(); ++first) {
        const int most = first == 0 ? choices_.devices() : choices_.devices() - before[first];
        const int least = first == 0 ? choices_.devices() : fewest[first];
        if (fewest[first] <= most) fill(left, first, bound, least, most);
      }
    }
  }

  bool stopped() const { return stops_ && stops_(); }

  /// None where there is none.
  std::vector<Partition::Stage> stages(int count) const {
    std::vector<Partition::Stage> stages;
    int first = 0, devices = choices_.devices();
    if (sum(count) == infinity) return stages;
    for (int left = count; left > 0; --left) {
      stages.push_back(at(left, first, devices)->stage);
      first = stages.back().end_layer;
      devices -= stages.back().devices;
    }
    return stages;
  }

  double sum(int count) const { return sum_of(count, 0, choices_.devices()); }
  /// Of so many stages from one layer on.
  double sum_of(int left, int first, int devices) const {
    const Entry* known = at(left, first, devices);
    return known ? known->sum : infinity;
  }

 private:
  struct Entry {
    double sum = infinity;
    Partition::Stage stage;
  };
  /// Of so many stages from one layer on, by their devices.
  struct Row {
    int least = 0;
    std::vector<Entry> entries;  ///< by unit_ apart
  };

  /// [first layer] The fewest devices for all layers before it, whatever is in flight.
  Fewest fewest_before(const Slowest& bound) const {
    Fewest fewest(static_cast<std::size_t>(choices_.layers()) + 1, choices_.devices() + 1);
    fewest[0] = 0;
    for (int first = 0; first < choices_.layers(); ++first)
      for (std::size_t s = 0; s < choices_.sizes().size(); ++s)
        for (int end = first + 1;
             end <= choices_.layers() && ends_.least_others(first, end, s) <= bound.others; ++end)
          if (choices_.fastest(0, first, end, s, bound))
            fewest[end] = std::min(fewest[end], fewest[first] + choices_.sizes()[s]);
    return fewest;
  }

  const Entry* at(int left, int first, int devices) const {
    if (left >= std::ssize(rows_)) return nullptr;
    const Row& row = rows_[left][first];
    const int place = (devices - row.least) / unit_;
    return devices < row.least || place >= std::ssize(row.entries) ? nullptr : &row.entries[place];
  }

  void fill(int left, int first, const Slowest& bound, int least, int most) {
    Row& row = rows_[left][first];
    row.least = least;
    row.entries.resize(static_cast<std::size_t>((most - least) / unit_ + 1));
    for (std::size_t s = 0; s < choices_.sizes().size(); ++s) {
      const int size = choices_.sizes()[s];
      for (int end = first + 1; end <= choices_.layers() && ends_.least_others(first, end, s) <= bound.others;
           ++end) {
        const Row& after = rows_[left - 1][end];
        const StageWay* way = after.entries.empty() ? nullptr : choices_.fastest(left, first, end, s, bound);
        if (!way) continue;
        const int begin = std::max(least, size + after.least);
        const int last =
            std::min(most, size + after.least + unit_ * static_cast<int>(std::ssize(after.entries) - 1));
        for (int devices = begin; devices <= last; devices += unit_) {
          const double sum = way->seconds.first + after.entries[(devices - size - after.least) / unit_].sum;
          Entry& entry = row.entries[(devices - least) / unit_];
          if (sum < entry.sum) entry = {sum, {end, size, way->id}};
        }
      }
    }
  }

  const StageChoices& choices_;
  const Ends& ends_;
  const std::function<bool()>& stops_;
  int unit_;                            ///< devices that stages have a multiple of
  std::vector<std::vector<Row>> rows_;  ///< [stages left][first layer]
};

/// What each of the stages takes.
std::vector<StageSeconds> seconds_of(const StageChoices& choices,
                                     const std::vector<Partition::Stage>& stages) {
  std::vector<StageSeconds> seconds;
  int first = 0;
  for (const Partition::Stage& stage : stages) {
    const std::vector<StageWay>& ways = choices.ways_on(stage.devices, first, stage.end_layer);
    seconds.push_back(std::ranges::find(ways, stage.way, &StageWay::id)->seconds);
    first = stage.end_layer;
  }
  return seconds;
}

/// The best partition for each number of stages.
class BestPartitions {
 public:
  BestPartitions(const StageChoices& choices, int least_stages, double alike,
                 const std::function<bool()>& stops)
      : choices_(choices),
        least_stages_(std::max(1, least_stages)),
        alike_(alike),
        stops_(stops),
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
    if (updates.empty() || stops_now() || updates.front() + rest_s >= best_s_ * (1 - alike_)) return;
    // The slowest of those above does no better than any within what counts as equal.
    const std::size_t middle = updates.size() / 2;
    const double of_middle_s = look_within(updates[middle]);
    look_between(updates.subspan(middle + 1), rest_s);
    look_between(updates.first(middle), of_middle_s);
  }

  /// All but the update of the best partition with updates within a bound: less than that is not possible.
  double look_within(double most_update) {
    const Ends ends(choices_, most_update);
    LeastSum table(choices_, ends, stops_);
    const auto least = std::partition_point(others_.begin(), others_.end(), [&](double others) {
      return !table.stopped() && !suffice(choices_, ends, {others, most_update}, least_stages_);
    });
    double rest_s = infinity, group = 0;
    for (auto others = least; others != others_.end() && !table.stopped(); ++others) {
      if (group == 0) group = *others;
      if (others + 1 != others_.end() && others[1] <= group * (1 + alike_)) continue;  // that one allows more
      if (*others > std::min(rest_s, best_s_ * kWorthKnowing)) break;
      table.fill({*others, most_update});
      group = 0;
      for (int count = least_stages_; count <= choices_.most_stages(); ++count) {
        if (table.sum(count) == infinity) continue;
        rest_s = std::min(rest_s, table.sum(count) + *others);
        std::vector<Partition::Stage> stages = table.stages(count);
        const double seconds = pipeline_seconds(seconds_of(choices_, stages));
        if (seconds < best_[count].seconds) best_[count] = {std::move(stages), seconds};
        best_s_ = std::min(best_s_, seconds);
      }
    }
    return rest_s;
  }

  bool stops_now() const { return stops_ && stops_(); }

  const StageChoices& choices_;
  const int least_stages_;
  const double alike_;
  const std::function<bool()>& stops_;
  const std::vector<double> others_;
  std::vector<Partition> best_;  ///< [stages]
  double best_s_ = infinity;
};

/// Looks at partitions stage by stage, and leaves those whose rest cannot be fast enough.
class NearPartitions {
 public:
  NearPartitions(const StageChoices& choices, double most_s, std::size_t count,
                 const std::function<bool()>& stops)
      : choices_(choices),
        ends_(choices, most_s),
        rest_(choices, ends_, stops),
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
      for (int end = first + 1; end <= choices_.layers() && ends_.least_others(first, end, s) < most_s_;
           ++end)
        for (const StageWay& way : choices_.ways(first, end, s)) {
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

StageChoices::StageChoices(int layers, int devices, std::vector<int> sizes, std::vector<int> in_flight)
    : layers_(layers), devices_(devices), sizes_(std::move(sizes)), in_flight_(std::move(in_flight)) {
  ways_.resize(static_cast<std::size_t>(layers) * static_cast<std::size_t>(layers + 1) * sizes_.size());
}

std::size_t StageChoices::index_of(int size) const {
  return static_cast<std::size_t>(std::ranges::find(sizes_, size) - sizes_.begin());
}

void StageChoices::offer(int first, int end, int size, StageWay way) {
  std::vector<StageWay>& known = ways_[place(first, end, index_of(size))];
  for (const StageWay& other : known)
    if (beats(other, way)) return;
  std::erase_if(known, [&](const StageWay& other) { return beats(way, other); });
  known.push_back(way);
}

const StageWay* StageChoices::fastest(int left, int first, int end, std::size_t size,
                                      const Slowest& bound) const {
  const StageWay* best = nullptr;
  for (const StageWay& way : ways(first, end, size))
    if (way.most_in_flight >= in_flight_[left] && way.seconds.others <= bound.others &&
        way.seconds.update <= bound.update && (!best || way.seconds.first < best->seconds.first))
      best = &way;
  return best;
}

std::vector<double> StageChoices::distinct(double StageSeconds::*part) const {
  std::vector<double> distinct;
  for (const std::vector<StageWay>& ways : ways_)
    for (const StageWay& way : ways) distinct.push_back(way.seconds.*part);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

std::vector<Partition> best_partitions(const StageChoices& choices, int least_stages, double alike,
                                       const std::function<bool()>& stops) {
  BestPartitions best(choices, least_stages, alike, stops);
  const std::vector<double> updates = choices.distinct(&StageSeconds::update);
  if (!updates.empty()) best.look_for(updates);
  return best.found();
}

std::vector<Partition> near_partitions(const StageChoices& choices, int least_stages, double most_s,
                                       std::size_t count, const std::function<bool()>& stops) {
  NearPartitions near(choices, most_s, count, stops);
  for (int stages = std::max(1, least_stages); stages <= choices.most_stages(); ++stages)
    near.look_for(stages);
  return near.found();
}

}  // namespace alpa
