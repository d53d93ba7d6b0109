#pragma once
#include <chrono>

#include "libalpa/base/stop_request.h"

namespace alpa {

/// The wall-clock cap of a search, and the wish to end it before. Nothing else in the search looks at a
/// clock.
class Deadline {
 public:
  /// `stop` may be null, and must outlive this.
  explicit Deadline(double seconds_from_now, const StopRequest* stop = nullptr);

  bool passed() const { return seconds_left() <= 0; }
  double seconds_left() const;  ///< below 0: since it passed, or since the stop was asked for
  const StopRequest* stop() const { return stop_; }

 private:
  std::chrono::steady_clock::time_point end_;
  const StopRequest* stop_;
};

}  // namespace alpa
