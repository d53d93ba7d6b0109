#pragma once
#include "libalpa/base/clock.h"

namespace alpa {

/// What makes an emulated computation, or a move between memories, take its time. One that is seen to end
/// late makes the next ones shorter by that, as those that follow each other would not have waited.
class EmulatedClock {
 public:
  EmulatedClock();

  /// Returns when so many seconds have passed since the call, or since the computation before should have
  /// ended and the work after it had been done.
  void compute(double seconds);

  /// The same for a thread that does something else meanwhile: when it ends (monotonic), which is then said.
  double begin(double seconds);
  void end() { woke_s_ = monotonic_s(); }

 private:
  double due_s_, woke_s_;  ///< the last end, and when the thread went on after it
};

}  // namespace alpa
