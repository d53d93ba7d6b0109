#include "libalpa/comm/naps.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(Naps, AreNoneAtFirstWhereNobodyComputes) {
  Naps naps(0);
  for (int poll = 0; poll < 50; ++poll) EXPECT_EQ(naps.next_s(1e-6 * poll, true), 0);
}

TEST(Naps, AreAtMostAHundredthOfTheTimeSinceSomethingMoved) {
  Naps naps(0);
  while (naps.next_s(0, true) == 0) continue;
  EXPECT_DOUBLE_EQ(naps.next_s(0.05, true), 0.0005);
  naps.moved(0.05);
  EXPECT_EQ(naps.next_s(0.05, true), 0);
}

TEST(Naps, SoonBecomeLongerBesideComputation) {
  Naps naps(0);
  double before_s = naps.next_s(0, false);
  EXPECT_GT(before_s, 0);
  for (int nap = 0; nap < 10; ++nap) {
    const double now_s = naps.next_s(0, false);
    EXPECT_GE(now_s, before_s);
    before_s = now_s;
  }
  EXPECT_GE(before_s, 1e-4);
  naps.moved(0);
  EXPECT_LT(naps.next_s(0, false), before_s);
}

}  // namespace
}  // namespace alpa
