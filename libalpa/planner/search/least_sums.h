#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/pipeline_table.h"
#include "libalpa/planner/search/span_table.h"
#include "libalpa/planner/search/stage_choices.h"

namespace alpa {

/// Where stages may end within a bound.
class StageEnds {
 public:
  StageEnds(const StageChoices& choices, double most_update)
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
  StagesWithin(const StageChoices& choices, const StageEnds& ends, const StageChoices::Slowest& bound)
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
  const StageChoices::Slowest bound_;
  std::vector<int> last_end_;  ///< [first layer, size]
};

/// The least sum of stages none of which takes longer than a bound.
class LeastSum {
 public:
  LeastSum(const StageChoices& choices, const StageEnds& ends, FillOptions options)
      : choices_(choices), ends_(ends), options_(std::move(options)) {}

  void fill(const StageChoices::Slowest& bound) {
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
  const StageEnds& ends_;
  const FillOptions options_;
  PipelineTable<Entry> table_;
};

/// Those of several slowest stages, each from when it is asked for on; the next ones are filled beside it.
class LeastSums {
 public:
  /// `slowest`: in the order in which they are asked for. Keeps references.
  LeastSums(const StageChoices& choices, const StageEnds& ends, double most_update,
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
  const StageEnds& ends_;
  const double most_update_;
  const std::vector<double>& slowest_;
  const FillOptions& options_;
  std::size_t begin_ = 0;
  std::vector<LeastSum> tables_;  ///< from begin_ on
};

}  // namespace alpa
