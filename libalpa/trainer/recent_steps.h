#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace alpa {

/// Durations of the last 200 steps, in seconds.
class RecentSteps {
 public:
  void add(double seconds) { seconds_[count_++ % seconds_.size()] = seconds; }
  std::size_t count() const { return count_; }  ///< of all steps
  double median_s() const {                     ///< 0 before the first
    if (count_ == 0) return 0;
    auto sorted = seconds_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count_, sorted.size()));
    const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }

 private:
  std::array<double, 200> seconds_{};  ///< in a ring
  std::size_t count_ = 0;
};

/// "predicted 100.00 ms, measured 200.00 ms (median), ratio 2.00"; without the ratio where the steps are too
/// few, as the first ones of a run are slow; "" where there is no prediction, or no step.
std::string step_times_text(double predicted_s, const RecentSteps&);

/// What [training] distinct_ids should have been; "" for nothing.
std::string rows_text(std::optional<double> share);

}  // namespace alpa
