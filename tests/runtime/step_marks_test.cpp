#include "libalpa/runtime/step_marks.h"

#include <gtest/gtest.h>

#include <thread>

#include "libalpa/base/clock.h"

namespace alpa {
namespace {

TEST(StepMarks, AreWaitedForUntilAnotherThreadHasCountedThatFar) {
  StepMarks marks(2);
  marks.begin_step();
  int done = 0;
  std::jthread other([&] {
    for (int i = 0; i < 3; ++i) {
      marks.wait(1, i + 1);  // asked for by the waiting thread
      ++done;
      marks.count(0);
    }
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(marks.is_reached(0, i + 1));
    marks.count(1);
    marks.wait(0, i + 1);
    EXPECT_EQ(done, i + 1);
  }
}

TEST(StepMarks, AreAbandonedWhereAThreadGivesUp) {
  StepMarks marks(1);
  marks.begin_step();
  std::jthread other([&] { marks.give_up(); });
  EXPECT_THROW(marks.wait(0, 1), StepMarks::Abandoned);
  EXPECT_TRUE(marks.has_given_up());
  marks.count(0);
  EXPECT_NO_THROW(marks.wait(0, 1));  // what is done is done
  marks.begin_step();
  EXPECT_FALSE(marks.has_given_up());
  EXPECT_FALSE(marks.is_reached(0, 1));
}

TEST(StepMarks, EndANapWhenSomethingIsCounted) {
  StepMarks marks(1);
  marks.begin_step();
  const std::int64_t seen = marks.changes();
  const double begin_s = monotonic_s();
  std::jthread other([&] { marks.count(0); });
  marks.nap(seen, 3600);
  EXPECT_LT(monotonic_s() - begin_s, 3600);
  marks.nap(seen, 3600);  // it has been counted since then
  EXPECT_NE(marks.changes(), seen);
}

}  // namespace
}  // namespace alpa
