#include "libalpa/base/units.h"

#include <gtest/gtest.h>

#include <cmath>

namespace alpa {
namespace {

TEST(Units, AreTheLargestThatLeaveAWholeDigit) {
  EXPECT_EQ(bytes_text(std::int64_t{512}), "512 B");
  EXPECT_EQ(bytes_text(1536.0), "1.50 KiB");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(1.23e-5), "12.3 us");
  EXPECT_EQ(seconds_text(125), "2m05s");
  EXPECT_EQ(rate_text(1.5e9, "FLOP/s"), "1.50 GFLOP/s");
}

TEST(Units, OfWhatNobodyWaitsForHaveNoSignTheyShouldNot) {
  EXPECT_EQ(seconds_text(3600 * 24 * 5), "5.0 days");
  EXPECT_EQ(seconds_text(1e8), "3.17 years");
  EXPECT_EQ(seconds_text(1e25), "3.17e+17 years");
  EXPECT_EQ(seconds_text(-200), "-3m20s");
  EXPECT_EQ(rate_text(1e30, "FLOP"), "1e+12 EFLOP");
  EXPECT_EQ(bytes_text(std::ldexp(1.0, 62)), "4.00 EiB");
}

TEST(Units, CountsHaveTheirPlural) {
  EXPECT_EQ(count_text(1, "stage"), "1 stage");
  EXPECT_EQ(count_text(0, "window"), "0 windows");
  EXPECT_EQ(count_text(4, "micro-batch"), "4 micro-batches");
}

}  // namespace
}  // namespace alpa
