#include "libalpa/planner/planning_clock.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "libalpa/base/units.h"

namespace alpa {

PlanningClock::PlanningClock(double time_limit_s, Log& log, double interval_s)
    : time_limit_s_(time_limit_s),
      deadline_(time_limit_s),
      log_(log),
      teller_([this, interval_s] { tell(interval_s); }) {}

PlanningClock::~PlanningClock() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_one();
  teller_.join();
}

void PlanningClock::begin(const std::string& phase, int parts) {
  const std::lock_guard lock(mutex_);
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
  if (bound_s_) text += fmt::format("; lower bound of what was searched {}", seconds_text(*bound_s_));
  return text + fmt::format("; {} gone, at most {} left", seconds_text(time_limit_s_ - left_s()),
                            seconds_text(std::max(0.0, left_s())));
}

void PlanningClock::tell(double interval_s) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (end_.wait_for(lock, std::chrono::duration<double>(interval_s), [this] { return ends_; })) return;
    }
    log_.info(line());
  }
}

}  // namespace alpa
