#include "libalpa/base/deadline.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(Deadline, HasPassedWhenItsTimeIsOver) {
  EXPECT_TRUE(Deadline(0).passed());
  EXPECT_TRUE(Deadline(-5).passed());
  EXPECT_FALSE(Deadline(3600).passed());
  EXPECT_FALSE(Deadline(1e300).passed());
}

TEST(Deadline, HasPassedWhenAStopIsAskedFor) {
  StopRequest stop;
  const Deadline deadline(3600, &stop);
  EXPECT_FALSE(deadline.passed());
  stop.ask();
  EXPECT_TRUE(deadline.passed());
  EXPECT_LE(deadline.seconds_left(), 0);
}

TEST(Deadline, IsNotPutOffByAStop) {
  StopRequest stop;
  stop.ask();
  EXPECT_LE(Deadline(0, &stop).seconds_left(), 0);
}

}  // namespace
}  // namespace alpa
