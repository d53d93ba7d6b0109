#include "libalpa/graph/wire_format.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(WireFormat, SendsTheShareOfIdsThatDifferIfDrawnUniformly) {
  EXPECT_DOUBLE_EQ((WireFormat{{}, 2, 0}.sent_share({1, 2, 8})), 0.75);       // 1.5 of 2
  EXPECT_DOUBLE_EQ((WireFormat{{}, 4, 0}.sent_share({3, 1, 8})), 37.0 / 48);  // 4 (1 - 27/64) of 3
  EXPECT_DOUBLE_EQ((WireFormat{{}, 1, 0}.sent_share({2, 2, 8})), 0.25);
  EXPECT_NEAR((WireFormat{{}, 1 << 30, 0}.sent_share({2, 2, 8})), 1,
              1e-8);  // of n in V some n / 2 V are equal
}

TEST(WireFormat, SendsTheShareThatItIsGiven) {
  EXPECT_EQ((WireFormat{{}, 2, 0.3}.sent_share({1, 2, 8})), 0.3);
  EXPECT_EQ((WireFormat{}.sent_share({1, 2, 8})), 1);  // rows without ids are all sent
}

}  // namespace
}  // namespace alpa
