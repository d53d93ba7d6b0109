#pragma once
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/span_table.h"
#include "libalpa/planner/stage_places.h"

namespace alpa {

/// What a stage adds to the time of a pipeline.
struct StageSeconds {
  double first = infinity;  ///< its first micro-batch
  double others = 0;        ///< all further ones
  double update = 0;        ///< once all stages are done
  bool operator==(const StageSeconds&) const = default;
};

inline double step_s(const StageSeconds& seconds) { return seconds.first + seconds.others + seconds.update; }
inline StageSeconds operator+(const StageSeconds& a, const StageSeconds& b) {
  return {a.first + b.first, a.others + b.others, a.update + b.update};
}

/// What the search minimises: the first micro-batch through all stages, then all others through the slowest
/// of them (Alpa, OSDI'22, equation 2), then the slowest update, as the norm of all gradients is waited for.
/// (Where it is not, later stages have theirs while earlier ones finish; the simulator knows.)
double pipeline_seconds(const std::vector<StageSeconds>&);

/// A way to run a stage, and how many micro-batches in flight its memory allows.
struct StageWay {
  int most_in_flight = 0;
  StageSeconds seconds;
  int id = 0;  ///< the caller's
};

/// How every stage that a pipeline may have can be run. A stage is a range of layers on a number of devices;
/// where its neighbours lie depends on how many devices are left for it and all behind it, and the
/// micro-batches that it holds on how many stages are left, itself among them.
class StageChoices {
 public:
  /// `in_flight`: [stages left], from 1 on, as many as a pipeline may have.
  StageChoices(int layers, const StagePlaces&, std::vector<int> sizes, std::vector<int> in_flight);
  StageChoices without_ways() const { return {layers_, places_, sizes_, in_flight_}; }

  /// Another way; those that another one beats in all are dropped.
  void offer(int first_layer, int end_layer, int size, const StageSides&, StageWay);

  /// All that none other beats. `size` is an index into sizes().
  const std::vector<StageWay>& ways(int first_layer, int end_layer, std::size_t size,
                                    const StageSides& sides) const {
    return ways_.at(first_layer, end_layer, size)[sides];
  }
  const std::vector<StageWay>& ways_on(int devices, int first_layer, int end_layer,
                                       const StageSides& sides) const {
    return ways(first_layer, end_layer, index_of(devices), sides);
  }

  /// What the slowest stages of a partition may take.
  struct Slowest {
    double others = infinity, update = infinity;
  };
  /// Of those that allow the micro-batches in flight and are no slower than that, the one with the fastest
  /// first micro-batch; null where there is none.
  const StageWay* fastest(int left, int first_layer, int end_layer, std::size_t size, const StageSides&,
                          const Slowest&) const;
  int in_flight(int left) const { return in_flight_[left]; }

  int layers() const { return layers_; }
  int devices() const { return places_.devices(); }
  const StagePlaces& places() const { return places_; }
  int most_stages() const { return static_cast<int>(in_flight_.size()) - 1; }
  const std::vector<int>& sizes() const { return sizes_; }
  /// Of all ways, ascending.
  std::vector<double> distinct(double StageSeconds::*) const;

 private:
  std::size_t index_of(int size) const;

  int layers_;
  StagePlaces places_;
  std::vector<int> sizes_, in_flight_;
  SpanTable<BySides<std::vector<StageWay>>> ways_;
};

/// All layers in order on all devices.
struct Partition {
  struct Stage {
    int end_layer = 0;
    int devices = 0;
    int way = 0;  ///< StageWay::id
    StageSeconds seconds = {};
    bool operator==(const Stage&) const = default;
  };
  std::vector<Stage> stages;
  double seconds = 0;  ///< pipeline_seconds
  bool operator==(const Partition&) const = default;
};
inline double step_s(const Partition::Stage& stage) { return step_s(stage.seconds); }

}  // namespace alpa
