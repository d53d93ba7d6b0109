#include "libalpa/base/checked.h"

#include <gtest/gtest.h>

#include <array>

namespace alpa {
namespace {

constexpr std::int64_t kMost = INT64_MAX;

TEST(Checked, ArithmeticEndsWhere64BitsDo) {
  EXPECT_EQ(checked_product(kMost / 2, 2), kMost - 1);
  EXPECT_EQ(checked_product(kMost / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_product(std::int64_t{1} << 32, std::int64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_sum(kMost - 1, 1), kMost);
  EXPECT_EQ(checked_sum(kMost, 1), std::nullopt);
}

TEST(Checked, NothingIsMadeOfNothing) {
  EXPECT_EQ(checked_product(std::nullopt, 0), std::nullopt);
  EXPECT_EQ(checked_sum(1, checked_product(kMost, 2)), std::nullopt);
}

TEST(Checked, ElementsOfATensorHaveABoundBelow64Bits) {
  EXPECT_EQ(checked_element_count(std::array<std::int64_t, 0>{}), 1);
  EXPECT_EQ(checked_element_count(std::array{kMostElements / 2, std::int64_t{2}}), kMostElements);
  EXPECT_EQ(checked_element_count(std::array{kMostElements / 2, std::int64_t{3}}), std::nullopt);
  EXPECT_EQ(checked_element_count(std::array{std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
}

}  // namespace
}  // namespace alpa
