#include "libalpa/solver/selection/lifting.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

// Node 2 was decided by node 0, then node 0 by node 1; node 1 is left with its strategies 1 and 3.
Lifting chain() {
  Lifting lifting;
  lifting.decide({2, {0}, {{0, 4}}, {7, 8}});
  lifting.decide({0, {1}, {{1, 3}}, {4, 0}});
  lifting.keep(1, {1, 3});
  return lifting;
}

TEST(Lifting, DecidesInReverseOrder) {
  EXPECT_EQ(chain().lift({0}), (std::vector<int>{4, 1, 8}));
  EXPECT_EQ(chain().lift({1}), (std::vector<int>{0, 3, 7}));
}

TEST(Lifting, DecidesByAllParentsTheLastFastest) {
  Lifting lifting;
  lifting.decide({0, {1, 2}, {{0, 1}, {5, 6, 7}}, {10, 11, 12, 13, 14, 15}});
  lifting.keep(1, {0, 1});
  lifting.keep(2, {5, 6, 7});
  EXPECT_EQ(lifting.lift({1, 0}), (std::vector<int>{13, 1, 5}));
}

TEST(Lifting, ProjectsToTheStrategyWithTheSameLabelElseTheFirst) {
  EXPECT_EQ(chain().project({0, 3, 7}), (std::vector<int>{1}));
  EXPECT_EQ(chain().project({0, 2, 7}), (std::vector<int>{0}));
}

}  // namespace
}  // namespace alpa
