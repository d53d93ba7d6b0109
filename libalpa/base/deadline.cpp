#include "libalpa/base/deadline.h"

#include <algorithm>

namespace alpa {

// A century is as good as no limit, and keeps the clock's arithmetic in range.
Deadline::Deadline(double seconds_from_now, const StopRequest* stop)
    : end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(std::clamp(seconds_from_now, 0.0, 3e9)))),
      stop_(stop) {}

double Deadline::seconds_left() const {
  const auto asked = stop_ ? stop_->asked_at() : std::nullopt;
  const auto end = asked ? std::min(*asked, end_) : end_;
  return std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
}

}  // namespace alpa
