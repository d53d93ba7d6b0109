#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

/// What a stage adds to the time of a pipeline.
struct StageSeconds {
  double first = infinity;  ///< its first micro-batch
  double others = 0;        ///< all further ones, and the update
};

/// What the search minimises: the first micro-batch through all stages, then the slowest of them for all
/// others and its update. (Alpa, OSDI'22, equation 2, with the update counted.)
double pipeline_seconds(const std::vector<StageSeconds>&);

/// The seconds of every stage that a pipeline may have. A stage is a range of layers on a number of devices,
/// with `left` stages left, itself among them (what it holds in memory depends on that).
class StageChoices {
 public:
  StageChoices(int layers, int devices, std::vector<int> sizes, int most_stages);

  void offer(int left, int first_layer, int end_layer, int size, StageSeconds);

  /// Infinite where nothing was offered. `size` is an index into sizes().
  const StageSeconds& seconds(int left, int first_layer, int end_layer, std::size_t size) const {
    return seconds_[place(left, first_layer, end_layer, size)];
  }

  int layers() const { return layers_; }
  int devices() const { return devices_; }
  int most_stages() const { return most_stages_; }
  const std::vector<int>& sizes() const { return sizes_; }
  std::vector<double> distinct_others() const;  ///< ascending

 private:
  std::size_t place(int left, int first, int end, std::size_t size) const;

  int layers_, devices_, most_stages_;
  std::vector<int> sizes_;
  std::vector<StageSeconds> seconds_;
};

/// All layers in order on all devices.
struct Partition {
  std::vector<std::pair<int, int>> stages;  ///< (end layer, devices)
  double seconds = 0;                       ///< pipeline_seconds
};

/// The least pipeline_seconds for each number of stages that has a partition, ascending; numbers whose best
/// is 5 % behind the best of all may be missing. For each bound on the slowest stage, the least sum (Alpa,
/// section 5.2). Slowest stages within `alike` of each other count as equal, so that much may be lost.
/// Ends with what it has once `stops` says so.
std::vector<Partition> best_partitions(const StageChoices&, int least_stages, double alike = 1e-4,
                                       const std::function<bool()>& stops = {});

}  // namespace alpa
