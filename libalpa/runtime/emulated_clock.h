#pragma once
#include "libalpa/base/clock.h"

namespace alpa {

/// What makes an emulated computation take its time: the calling thread sleeps. A sleep that ends late makes
/// the next ones shorter by that, as computations that follow each other would not have waited.
class EmulatedClock {
 public:
  EmulatedClock();

  /// Returns when so many seconds have passed since the call, or since the computation before should have
  /// ended and the work after it had been done.
  void compute(double seconds);

 private:
  double due_s_, woke_s_;  ///< the last computation's end, and when the thread went on after it
};

}  // namespace alpa
