#include "libalpa/planner/search/stage_partition.h"

#include <algorithm>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

/// The least sum of stages none of which takes longer than a bound.
class LeastSum {
 public:
  LeastSum(const StageChoices& choices, const std::function<bool()>& stops)
      : choices_(choices),
        stops_(stops),
        table_(static_cast<std::size_t>(choices.most_stages() + 1) *
               static_cast<std::size_t>(choices.layers() + 1) *
               static_cast<std::size_t>(choices.devices() + 1)) {}

  void fill(double bound) {
    std::fill(table_.begin(), table_.end(), Entry{});
    at(0, choices_.layers(), 0).sum = 0;
    for (int left = 1; left <= choices_.most_stages(); ++left)
      for (int first = choices_.layers() - left; first >= 0; --first)
        for (int devices = left; devices <= choices_.devices() && !stopped(); ++devices)
          fill(left, first, devices, bound);
  }

  bool stopped() const { return stops_ && stops_(); }

  /// Empty where there is none.
  std::vector<std::pair<int, int>> stages(int count) {
    std::vector<std::pair<int, int>> stages;
    int first = 0, devices = choices_.devices();
    if (at(count, 0, devices).sum == infinity) return stages;
    for (int left = count; left > 0; --left) {
      const Entry& entry = at(left, first, devices);
      stages.emplace_back(entry.end, entry.size);
      first = entry.end;
      devices -= entry.size;
    }
    return stages;
  }

  double sum(int count) { return at(count, 0, choices_.devices()).sum; }

 private:
  struct Entry {
    double sum = infinity;
    int end = 0, size = 0;
  };

  Entry& at(int left, int first, int devices) {
    const auto layers = static_cast<std::size_t>(choices_.layers()),
               all_devices = static_cast<std::size_t>(choices_.devices());
    return table_[(static_cast<std::size_t>(left) * (layers + 1) + static_cast<std::size_t>(first)) *
                      (all_devices + 1) +
                  static_cast<std::size_t>(devices)];
  }

  void fill(int left, int first, int devices, double bound) {
    Entry& entry = at(left, first, devices);
    for (std::size_t s = 0; s < choices_.sizes().size(); ++s) {
      const int size = choices_.sizes()[s];
      if (size > devices) break;
      for (int end = first + 1; end <= choices_.layers(); ++end) {
        const double rest = at(left - 1, end, devices - size).sum;
        const StageSeconds& stage = choices_.seconds(left, first, end, s);
        if (stage.others <= bound && stage.first + rest < entry.sum) entry = {stage.first + rest, end, size};
      }
    }
  }

  const StageChoices& choices_;
  const std::function<bool()>& stops_;
  std::vector<Entry> table_;  ///< stages from layer `first` on so many devices
};

double seconds_of(const StageChoices& choices, const std::vector<std::pair<int, int>>& stages) {
  std::vector<StageSeconds> seconds;
  int left = static_cast<int>(stages.size()), first = 0;
  for (const auto& [end, size] : stages) {
    const auto s = std::find(choices.sizes().begin(), choices.sizes().end(), size) - choices.sizes().begin();
    seconds.push_back(choices.seconds(left--, first, end, static_cast<std::size_t>(s)));
    first = end;
  }
  return pipeline_seconds(seconds);
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

StageChoices::StageChoices(int layers, int devices, std::vector<int> sizes, int most_stages)
    : layers_(layers), devices_(devices), most_stages_(most_stages), sizes_(std::move(sizes)) {
  const std::size_t ranges = static_cast<std::size_t>(layers) * static_cast<std::size_t>(layers + 1);
  seconds_.assign(static_cast<std::size_t>(most_stages + 1) * ranges * sizes_.size(), StageSeconds{});
}

std::size_t StageChoices::place(int left, int first, int end, std::size_t size) const {
  const std::size_t l = static_cast<std::size_t>(layers_);
  return ((static_cast<std::size_t>(left) * l + static_cast<std::size_t>(first)) * (l + 1) +
          static_cast<std::size_t>(end)) *
             sizes_.size() +
         size;
}

void StageChoices::offer(int left, int first, int end, int size, StageSeconds seconds) {
  const auto s = std::find(sizes_.begin(), sizes_.end(), size) - sizes_.begin();
  seconds_[place(left, first, end, static_cast<std::size_t>(s))] = seconds;
}

std::vector<double> StageChoices::distinct_others() const {
  std::vector<double> distinct;
  for (const StageSeconds& seconds : seconds_)
    if (seconds.first < infinity) distinct.push_back(seconds.others);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

std::vector<Partition> best_partitions(const StageChoices& choices, int least_stages, double alike,
                                       const std::function<bool()>& stops) {
  constexpr double kWorthKnowing = 1.05;
  std::vector<Partition> best(static_cast<std::size_t>(choices.most_stages()) + 1);
  for (Partition& partition : best) partition.seconds = infinity;
  double best_of_all = infinity, group = 0;
  LeastSum table(choices, stops);
  const std::vector<double> bounds = choices.distinct_others();
  for (std::size_t b = 0; b < bounds.size() && !table.stopped(); ++b) {
    if (group == 0) group = bounds[b];
    if (b + 1 < bounds.size() && bounds[b + 1] <= group * (1 + alike)) continue;  // that one allows more
    if (bounds[b] > best_of_all * kWorthKnowing) break;
    table.fill(bounds[b]);
    group = 0;
    for (int count = std::max(1, least_stages); count <= choices.most_stages(); ++count) {
      if (table.sum(count) == infinity) continue;
      std::vector<std::pair<int, int>> stages = table.stages(count);
      const double seconds = seconds_of(choices, stages);
      Partition& known = best[count];
      if (seconds < known.seconds) known = {std::move(stages), seconds};
      best_of_all = std::min(best_of_all, seconds);
    }
  }
  std::erase_if(best, [](const Partition& partition) { return partition.seconds == infinity; });
  return best;
}

}  // namespace alpa
