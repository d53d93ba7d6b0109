#include "libalpa/base/units.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(Units, AreTheLargestThatLeaveAWholeDigit) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(1.23e-5), "12.3 us");
  EXPECT_EQ(seconds_text(125), "2m05s");
  EXPECT_EQ(rate_text(1.5e9, "FLOP/s"), "1.50 GFLOP/s");
}

TEST(Units, CountsHaveTheirPlural) {
  EXPECT_EQ(count_text(1, "stage"), "1 stage");
  EXPECT_EQ(count_text(0, "window"), "0 windows");
  EXPECT_EQ(count_text(4, "micro-batch"), "4 micro-batches");
}

}  // namespace
}  // namespace alpa
