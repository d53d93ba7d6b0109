#include "libalpa/planner/search/planning_clock.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "libalpa/base/clock.h"
#include "libalpa/base/units.h"

namespace alpa {

PlanningClock::PlanningClock(double time_limit_s, Log& log, const StopRequest* stop, double interval_s)
    : time_limit_s_(time_limit_s),
      deadline_(time_limit_s, stop),
      log_(log),
      reporter_([this, interval_s] { report(interval_s); }) {}

PlanningClock::~PlanningClock() {
  begin("", 0);
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_one();
  reporter_.join();
}

void PlanningClock::begin(const std::string& phase, int parts) {
  const double now_s = monotonic_s();
  const std::lock_guard lock(mutex_);
  if (!phase_.empty()) log_.debug(fmt::format("{}: {}", phase_, seconds_text(now_s - began_s_)));
  began_s_ = now_s;
  phase_ = phase;
  parts_ = parts;
  done_ = 0;
}

void PlanningClock::one_done() {
  const std::lock_guard lock(mutex_);
  ++done_;
}

void PlanningClock::found(double step_s) {
  const std::lock_guard lock(mutex_);
  best_s_ = std::min(step_s, best_s_.value_or(step_s));
}

void PlanningClock::bounded(double lower_bound_s) {
  const std::lock_guard lock(mutex_);
  bound_s_ = lower_bound_s;
}

std::string PlanningClock::where() const {
  const std::lock_guard lock(mutex_);
  return parts_ > 0 ? fmt::format("{}, {} of {}", phase_, done_, parts_) : phase_;
}

std::string PlanningClock::line() const {
  std::string text = where();
  const std::lock_guard lock(mutex_);
  if (best_s_) text += fmt::format("; best so far {}", seconds_text(*best_s_));
  // A bound above the best says only that what was searched cannot hold a better plan.
  if (bound_s_ && (!best_s_ || *bound_s_ <= *best_s_))
    text += fmt::format("; lower bound of what was searched {}", seconds_text(*bound_s_));
  return text + fmt::format("; {} elapsed, at most {} left", seconds_text(time_limit_s_ - left_s()),
                            seconds_text(std::max(0.0, left_s())));
}

std::string PlanningClock::end() const {
  if (!is_stopped())
    return fmt::format("the time limit of {} (--time-limit) was reached", seconds_text(time_limit_s_));
  const char* name = sigabbrev_np(deadline_.stop()->signal());
  return name ? fmt::format("the search was stopped (SIG{})", name) : "the search was stopped";
}

void PlanningClock::report(double interval_s) {
  constexpr double kLookEvery_s = 0.1;  // at a stop
  bool has_stopped = false;
  for (double next_s = interval_s, now_s = 0;; now_s += kLookEvery_s) {
    {
      std::unique_lock lock(mutex_);
      if (end_.wait_for(lock, std::chrono::duration<double>(kLookEvery_s), [this] { return ends_; })) return;
    }
    if (is_stopped() && !std::exchange(has_stopped, true))
      log_.info("stopping; a second Ctrl-C ends at once");
    if (has_stopped || now_s < next_s) continue;
    log_.info(line());
    next_s += interval_s;
  }
}

}  // namespace alpa
