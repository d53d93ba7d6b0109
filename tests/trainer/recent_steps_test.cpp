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

TEST(StepTimes, AreComparedWhereTheyAreEnough) {
  RecentSteps recent;
  EXPECT_EQ(step_times_text(0.1, recent), "");
  recent.add(1.5);
  EXPECT_EQ(step_times_text(0.1, recent),
            "predicted 100.00 ms, measured 1.50 s (median of 1 step, too few to compare)");
  for (int i = 0; i < 9; ++i) recent.add(0.2);
  EXPECT_EQ(step_times_text(0.1, recent), "predicted 100.00 ms, measured 200.00 ms (median), ratio 2.00");
  EXPECT_EQ(step_times_text(0, recent), "");
}

TEST(Rows, AreSaidAsTheShareThatPredictionsTake) {
  EXPECT_EQ(rows_text(0.3125),
            "rows of ids that differ: 31.2 % of those of the first rank (distinct_ids = 0.312)");
  EXPECT_EQ(rows_text(std::nullopt), "");
}

}  // namespace
}  // namespace alpa
