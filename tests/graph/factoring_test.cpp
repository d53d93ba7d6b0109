#include "libalpa/graph/factoring.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

std::pair<int, int> places(const Factoring& factoring) {
  return {static_cast<int>(factoring.rows), static_cast<int>(factoring.columns)};
}
std::pair<int, int> rows_and_columns(const Shape& parameter) { return places(Factoring::of(parameter)); }

TEST(Factoring, TakesTheTwoLongestDimensionsInTheirOrder) {
  EXPECT_EQ(rows_and_columns({512, 128}), std::pair(0, 1));
  EXPECT_EQ(rows_and_columns({8, 512, 2048}), std::pair(1, 2));   // experts
  EXPECT_EQ(rows_and_columns({512, 16, 64}), std::pair(0, 2));    // heads
  EXPECT_EQ(rows_and_columns({3, 3, 64, 128}), std::pair(2, 3));  // a convolution's window
  EXPECT_EQ(rows_and_columns({1024, 3, 3, 1024}), std::pair(0, 3));
}

TEST(Factoring, TakesTheLaterOfEquallyLongDimensions) {
  EXPECT_EQ(rows_and_columns({4, 4, 4}), std::pair(1, 2));
  EXPECT_EQ(rows_and_columns({7, 4, 4}), std::pair(0, 2));
}

TEST(Factoring, LeavesParametersOfLessThanTwoDimensionsWhole) {
  EXPECT_FALSE(Factoring::of(Shape{512}).exists());
  EXPECT_FALSE(Factoring::of(Shape{}).exists());
  EXPECT_EQ(Factoring::of(Shape{512}).attributes(), Attributes());
}

TEST(Factoring, IsReadBackFromAttributes) {
  EXPECT_EQ(places(Factoring::of(Factoring::of(Shape{8, 512, 2048}).attributes())), std::pair(1, 2));
}

TEST(FactoredExtents, GatherTheDimensionsAroundRowsAndColumns) {
  const FactoredExtents e(Shape{2, 3, 5, 7, 11, 13}, Factoring{1, 4});
  EXPECT_EQ(std::tuple(e.outer, e.rows, e.middle, e.columns, e.inner), std::tuple(2, 3, 35, 11, 13));
  EXPECT_EQ(e.width(), 35 * 11 * 13);
  const FactoredExtents same(Shape{2, 3, 5, 7, 13}, Shape{2, 5, 7, 11, 13}, Factoring{1, 4});
  EXPECT_EQ(std::tuple(same.rows, same.middle, same.columns), std::tuple(3, 35, 11));
}

TEST(FactoredExtents, OfWhatIsNotFactoredAreRowsAlone) {
  const FactoredExtents e(Shape{7}, Factoring{});
  EXPECT_EQ(std::tuple(e.outer, e.rows, e.columns), std::tuple(1, 7, 1));
}

}  // namespace
}  // namespace alpa
