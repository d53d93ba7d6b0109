#include "libalpa/trainer/stop.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace alpa {

bool ends_run(StopReason reason) { return reason > StopReason::save_file; }

const char* stop_reason_text(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "nothing";
    case StopReason::save_file:
      return "the file SAVE in the run folder";
    case StopReason::stop_file:
      return "the file STOP in the run folder";
    case StopReason::end_time:
      return "the time limit";
    case StopReason::signal:
      return "a signal";
  }
  return "";
}

double stop_margin_s(double whole_run_s, double step_s, double checkpoint_s) {
  return step_s + 2 * checkpoint_s + std::min(60.0, whole_run_s / 4);
}

StopLimits stop_limits(double end_time_s, double max_hours) {
  StopLimits limits;
  if (end_time_s > 0) limits.end_time_s = end_time_s;
  if (max_hours > 0) limits.max_run_s = max_hours * 3600;
  return limits;
}

StopConditions::StopConditions(const std::filesystem::path& run_dir, const StopLimits& limits,
                               const StopRequest& request, bool looks_at_files, std::function<double()> now_s)
    : stop_file_(run_dir / "STOP"),
      save_file_(run_dir / "SAVE"),
      request_(request),
      looks_at_files_(looks_at_files),
      now_s_(std::move(now_s)),
      start_s_(now_s_()),
      end_s_(limits.end_time_s) {
  if (limits.max_run_s)
    end_s_ = end_s_ ? std::min(*end_s_, start_s_ + *limits.max_run_s) : start_s_ + *limits.max_run_s;
}

StopReason StopConditions::local_reason(double step_s, double checkpoint_s) {
  if (request_.is_asked()) return StopReason::signal;
  const double now = now_s_();
  if (end_s_ && now >= *end_s_ - stop_margin_s(std::max(*end_s_ - start_s_, 0.0), step_s, checkpoint_s))
    return StopReason::end_time;
  constexpr double interval_s = 2;
  if (looks_at_files_ && (!looked_s_ || now >= *looked_s_ + interval_s)) {
    looked_s_ = now;
    std::error_code ignored;
    if (std::filesystem::exists(stop_file_, ignored))
      from_files_ = StopReason::stop_file;
    else if (!save_is_stuck_ && std::filesystem::exists(save_file_, ignored))
      from_files_ = StopReason::save_file;
    else
      from_files_ = StopReason::none;
  }
  return from_files_;
}

void StopConditions::saved() {
  if (!looks_at_files_) return;
  std::error_code error;
  std::filesystem::remove(save_file_, error);
  save_is_stuck_ = static_cast<bool>(error);
  if (from_files_ == StopReason::save_file) from_files_ = StopReason::none;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace alpa
