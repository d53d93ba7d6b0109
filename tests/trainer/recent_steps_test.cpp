#include "libalpa/trainer/recent_steps.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(RecentSteps, HaveTheMedianOfTheLastTwoHundred) {
  RecentSteps recent;
  EXPECT_EQ(recent.median_s(), 0);
  for (const double seconds : {5, 1, 3}) recent.add(seconds);
  EXPECT_EQ(recent.median_s(), 3);
  for (int i = 0; i < 150; ++i) recent.add(7);
  EXPECT_EQ(recent.median_s(), 7);
  for (int i = 0; i < 101; ++i) recent.add(2);
  EXPECT_EQ(recent.median_s(), 2);  // 101 of 2 and 99 of 7
}

}  // namespace
}  // namespace alpa
