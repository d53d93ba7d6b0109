#include "libalpa/planner/search/stage_partition.h"

#include <algorithm>
#include <numeric>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

/// Whether a way is as good as another in all respects.
bool beats(const StageWay& a, const StageWay& b) {
  return a.most_in_flight >= b.most_in_flight && a.seconds.first <= b.seconds.first &&
         a.seconds.others <= b.seconds.others;
}

/// Where stages may end within a bound on all micro-batches but the first.
class Ends {
 public:
  explicit Ends(const StageChoices& choices) : choices_(choices) {
    const std::size_t layers = static_cast<std::size_t>(choices.layers()), sizes = choices.sizes().size();
    least_.assign(layers * (layers + 2) * sizes, infinity);
    for (int first = 0; first < choices.layers(); ++first)
      for (int end = choices.layers(); end > first; --end)
        for (std::size_t s = 0; s < sizes; ++s) {
          double& least = least_[place(first, end, s)];
          least = least_[place(first, end + 1, s)];
          for (const StageWay& way : choices.ways(first, end, s)) least = std::min(least, way.seconds.others);
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

/// Whether there are devices enough for a pipeline of so many stages or more, none slower than a bound: for
/// each number of stages left and first layer, the fewest that do.
bool suffice(const StageChoices& choices, const Ends& ends, double bound, int least_stages) {
  const int layers = choices.layers(), none = choices.devices() + 1;
  std::vector<int> after(static_cast<std::size_t>(layers) + 1, none), fewest;  // [first layer]
  after.back() = 0;
  for (int left = 1; left <= choices.most_stages(); ++left) {
    fewest.assign(after.size(), none);
    for (int first = 0; first + left <= layers; ++first)
      for (std::size_t s = 0; s < choices.sizes().size(); ++s) {
        for (int end = first + 1; end <= layers && ends.least_others(first, end, s) <= bound; ++end)
          if (choices.fastest(left, first, end, s, bound))
            fewest[first] = std::min(fewest[first], choices.sizes()[s] + after[end]);
      }
    if (left >= least_stages && fewest[0] <= choices.devices()) return true;
    after = fewest;
  }
  return false;
}

/// The least sum of stages none of which takes longer than a bound.
class LeastSum {
 public:
  LeastSum(const StageChoices& choices, const Ends& ends, const std::function<bool()>& stops)
      : choices_(choices), ends_(ends), stops_(stops), unit_(choices.devices()) {
    for (const int size : choices.sizes()) unit_ = std::gcd(unit_, size);
    table_.resize(static_cast<std::size_t>(choices.most_stages() + 1) *
                  static_cast<std::size_t>(choices.layers() + 1) *
                  static_cast<std::size_t>(choices.devices() / unit_ + 1));
  }

  void fill(double bound) {
    std::fill(table_.begin(), table_.end(), Entry{});
    at(0, choices_.layers(), 0).sum = 0;
    for (int left = 1; left <= choices_.most_stages(); ++left)
      for (int first = choices_.layers() - left; first >= 0 && !stopped(); --first) fill(left, first, bound);
  }

  bool stopped() const { return stops_ && stops_(); }

  /// None where there is none.
  std::vector<Partition::Stage> stages(int count) {
    std::vector<Partition::Stage> stages;
    int first = 0, devices = choices_.devices();
    if (at(count, 0, devices).sum == infinity) return stages;
    for (int left = count; left > 0; --left) {
      stages.push_back(at(left, first, devices).stage);
      first = stages.back().end_layer;
      devices -= stages.back().devices;
    }
    return stages;
  }

  double sum(int count) { return at(count, 0, choices_.devices()).sum; }

 private:
  struct Entry {
    double sum = infinity;
    Partition::Stage stage;
  };

  Entry& at(int left, int first, int devices) {
    const auto layers = static_cast<std::size_t>(choices_.layers()),
               units = static_cast<std::size_t>(choices_.devices() / unit_);
    return table_[(static_cast<std::size_t>(left) * (layers + 1) + static_cast<std::size_t>(first)) *
                      (units + 1) +
                  static_cast<std::size_t>(devices / unit_)];
  }

  void fill(int left, int first, double bound) {
    for (std::size_t s = 0; s < choices_.sizes().size(); ++s) {
      const int size = choices_.sizes()[s];
      for (int end = first + 1; end <= choices_.layers() && ends_.least_others(first, end, s) <= bound;
           ++end) {
        const StageWay* way = choices_.fastest(left, first, end, s, bound);
        if (!way) continue;
        for (int devices = size; devices <= choices_.devices(); devices += unit_) {
          const double sum = way->seconds.first + at(left - 1, end, devices - size).sum;
          if (Entry& entry = at(left, first, devices); sum < entry.sum) entry = {sum, {end, size, way->id}};
        }
      }
    }
  }

  const StageChoices& choices_;
  const Ends& ends_;
  const std::function<bool()>& stops_;
  int unit_;                  ///< devices that stages have a multiple of
  std::vector<Entry> table_;  ///< stages from layer `first` on so many devices
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

}  // namespace

double pipeline_seconds(const std::vector<StageSeconds>& stages) {
  double sum = 0, slowest = 0;
  for (const StageSeconds& stage : stages) {
    sum += stage.first;
    slowest = std::max(slowest, stage.others);
  }
  return sum + slowest;
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

const StageWay* StageChoices::fastest(int left, int first, int end, std::size_t size, double bound) const {
  const StageWay* best = nullptr;
  for (const StageWay& way : ways(first, end, size))
    if (way.most_in_flight >= in_flight_[left] && way.seconds.others <= bound &&
        (!best || way.seconds.first < best->seconds.first))
      best = &way;
  return best;
}

std::vector<double> StageChoices::distinct_others() const {
  std::vector<double> distinct;
  for (const std::vector<StageWay>& ways : ways_)
    for (const StageWay& way : ways) distinct.push_back(way.seconds.others);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

std::vector<Partition> best_partitions(const StageChoices& choices, int least_stages, double alike,
                                       const std::function<bool()>& stops) {
  constexpr double kWorthKnowing = 1.05;
  std::vector<Partition> best(static_cast<std::size_t>(choices.most_stages()) + 1);
  for (Partition& partition : best) partition.seconds = infinity;
  const Ends ends(choices);
  LeastSum table(choices, ends, stops);
  const std::vector<double> bounds = choices.distinct_others();
  const auto least = std::partition_point(bounds.begin(), bounds.end(), [&](double bound) {
    return !table.stopped() && !suffice(choices, ends, bound, least_stages);
  });
  double best_of_all = infinity, group = 0;
  for (auto bound = least; bound != bounds.end() && !table.stopped(); ++bound) {
    if (group == 0) group = *bound;
    if (bound + 1 != bounds.end() && bound[1] <= group * (1 + alike)) continue;  // that one allows more
    if (*bound > best_of_all * kWorthKnowing) break;
    table.fill(*bound);
    group = 0;
    for (int count = std::max(1, least_stages); count <= choices.most_stages(); ++count) {
      if (table.sum(count) == infinity) continue;
      std::vector<Partition::Stage> stages = table.stages(count);
      const double seconds = pipeline_seconds(seconds_of(choices, stages));
      Partition& known = best[count];
      if (seconds < known.seconds) known = {std::move(stages), seconds};
      best_of_all = std::min(best_of_all, seconds);
    }
  }
  std::erase_if(best, [](const Partition& partition) { return partition.seconds == infinity; });
  for (Partition& partition : best) {
    const std::vector<StageSeconds> seconds = seconds_of(choices, partition.stages);
    for (std::size_t s = 0; s < seconds.size(); ++s) partition.stages[s].seconds = seconds[s];
  }
  return best;
}

}  // namespace alpa
