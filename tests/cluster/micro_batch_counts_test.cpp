#include "libalpa/cluster/micro_batch_counts.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace alpa {
namespace {

using testing::ElementsAre;

TEST(MicroBatchCounts, AreDivisorsOfTheBatchEachTwiceThatBeforeOrMore) {
  EXPECT_THAT(micro_batch_counts(48, 48), ElementsAre(1, 2, 4, 8, 16, 48));
  EXPECT_THAT(micro_batch_counts(12, 12), ElementsAre(1, 2, 4, 12));
  EXPECT_THAT(micro_batch_counts(7, 7), ElementsAre(1, 7));
  EXPECT_THAT(micro_batch_counts(1520, 100), ElementsAre(1, 2, 4, 8, 16, 38, 76));
}

TEST(MicroBatchCounts, AreNoMoreThanAsked) {
  EXPECT_THAT(micro_batch_counts(1024, 8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(micro_batch_counts(1024, 63), ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(MicroBatchCounts, WithALowerMostAreAmongThoseWithAHigher) {
  for (int most = 1; most < 96; ++most) {
    const auto few = micro_batch_counts(96, most), more = micro_batch_counts(96, most + 1);
    EXPECT_TRUE(std::includes(more.begin(), more.end(), few.begin(), few.end())) << most;
  }
}

}  // namespace
}  // namespace alpa
