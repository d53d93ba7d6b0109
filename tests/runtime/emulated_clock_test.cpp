#include "libalpa/runtime/emulated_clock.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

// A bound below alone: how late a thread goes on after a sleep is the machine's.
TEST(EmulatedClock, LetsTheTimeOfAllComputationsPass) {
  const double begin = monotonic_s();
  EmulatedClock clock;
  for (int i = 0; i < 20; ++i) clock.compute(2e-3);
  EXPECT_GE(monotonic_s() - begin, 20 * 2e-3);
}

TEST(EmulatedClock, MakesUpForNoWorkBetweenComputations) {
  EmulatedClock clock;
  clock.compute(1e-3);
  double begin = monotonic_s();
  while (monotonic_s() < begin + 5e-3) continue;
  begin = monotonic_s();
  clock.compute(5e-3);
  EXPECT_GE(monotonic_s() - begin, 5e-3 - 2e-4);
}

// As what is moved beside a computation, of which the next begins late.
TEST(EmulatedClock, SaysWhenItEndsToWhoDoesSomethingElseMeanwhile) {
  EmulatedClock clock;
  const double begin = monotonic_s();
  for (int i = 0; i < 5; ++i) {
    const double end_s = clock.begin(2e-3);
    while (monotonic_s() < end_s) continue;
    clock.end();
  }
  EXPECT_GE(monotonic_s() - begin, 5 * 2e-3 - 2e-4);
}

}  // namespace
}  // namespace alpa
