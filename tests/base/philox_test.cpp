#include "libalpa/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace alpa {
namespace {

// Known answers published with the Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
  const PhiloxBlock zero = philox(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const PhiloxBlock ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
}

TEST(Philox, NormalDrawsHaveZeroMeanAndUnitVariance) {
  double sum = 0, squares = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double x = philox_normal_at(7, 3, i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));  // four standard errors
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2.0 / n));
}

}  // namespace
}  // namespace alpa
