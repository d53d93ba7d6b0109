#include "libalpa/cluster/micro_batch_counts.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace alpa {
namespace {

using testing::ElementsAre;

TEST(MicroBatchCounts, ArePowersOfTwoThatDivideTheBatch) {
  EXPECT_THAT(micro_batch_counts(48, 4), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(micro_batch_counts(12, 4), ElementsAre(1, 2, 4));
  EXPECT_THAT(micro_batch_counts(7, 4), ElementsAre(1));
}

TEST(MicroBatchCounts, AreAtMostFourPerDevice) {
  EXPECT_THAT(micro_batch_counts(1024, 1), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(micro_batch_counts(1024, 8), ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(MicroBatchCounts, OfFewerDevicesAreAmongThoseOfMore) {
  for (int devices = 1; devices < 20; ++devices) {
    const auto few = micro_batch_counts(96, devices), more = micro_batch_counts(96, devices + 1);
    EXPECT_TRUE(std::includes(more.begin(), more.end(), few.begin(), few.end())) << devices;
  }
}

}  // namespace
}  // namespace alpa
