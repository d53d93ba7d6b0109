#include "libalpa/runtime/emulated_clock.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace alpa {

EmulatedClock::EmulatedClock() : due_s_(monotonic_s()), woke_s_(due_s_) {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // ns; usually 50,000, more than a small kernel takes
}

double EmulatedClock::begin(double seconds) {
  constexpr double kMostLate_s = 2e-4;  // more comes of another program's turn, not of a sleep
  const double now = monotonic_s();
  return due_s_ = std::max(due_s_ + (now - woke_s_), now - kMostLate_s) + seconds;
}

void EmulatedClock::compute(double seconds) {
  const double left_s = begin(seconds) - monotonic_s();
  if (left_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left_s));
  end();
}

}  // namespace alpa
