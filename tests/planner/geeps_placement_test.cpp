#include "libalpa/planner/geeps_placement.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace alpa {
namespace {

using Placed = std::vector<bool>;

TEST(GeepsPlacement, HasAllOnTheDeviceWhereThatFits) {
  EXPECT_EQ(geeps_placement(std::vector<CachedItem>{{0, 4}, {1, 6}}, 10), (Placed{true, true}));
  EXPECT_EQ(geeps_placement({}, 10), Placed());
}

TEST(GeepsPlacement, HasNothingThereThatLeavesNoRoomForADoubleBuffer) {
  EXPECT_EQ(geeps_placement(std::vector<CachedItem>{{0, 4}, {1, 6}}, 9), (Placed{false, false}));
}

// 8 of 10 + 2 x 4 is all that there is: with the 6 on the device the double buffer is of 4.
TEST(GeepsPlacement, TakesOfTheLargestUseWhatMakesTheDoubleBufferSmaller) {
  const std::vector<CachedItem> items{{0, 4}, {1, 6}, {1, 4}};
  EXPECT_EQ(geeps_placement(items, 13), (Placed{false, false, false}));
  EXPECT_EQ(geeps_placement(items, 14), (Placed{true, true, true}));  // all of them
  const std::vector<CachedItem> more{{0, 4}, {1, 6}, {1, 4}, {2, 4}, {3, 4}};
  EXPECT_EQ(geeps_placement(more, 14), (Placed{false, true, false, false, false}));
}

TEST(GeepsPlacement, TakesAnyThatFitsWhereNoneOfTheLargestUseDoes) {
  const std::vector<CachedItem> items{{0, 5}, {1, 10}, {2, 10}};
  EXPECT_EQ(geeps_placement(items, 24), (Placed{false, false, false}));
  EXPECT_EQ(geeps_placement(items, 25), (Placed{true, true, true}));
  const std::vector<CachedItem> more{{0, 5}, {1, 10}, {2, 10}, {3, 10}};
  EXPECT_EQ(geeps_placement(more, 25), (Placed{true, false, false, false}));
  EXPECT_EQ(geeps_placement(more, 30), (Placed{false, true, false, false}));
}

TEST(GeepsPlacement, LeavesRoomForADoubleBufferAndNoneForAnyMore) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<CachedItem> items;
    std::int64_t all = 0;
    for (int i = 0; i < 12; ++i) {
      items.push_back({static_cast<int>(random() % 4), static_cast<std::int64_t>(1 + random() % 20)});
      all += items.back().bytes;
    }
    const auto capacity = static_cast<std::int64_t>(random() % all);
    const std::vector<bool> stays = geeps_placement(items, capacity);
    std::map<int, std::int64_t> moved;
    std::int64_t there = 0;
    for (std::size_t i = 0; i < items.size(); ++i) (stays[i] ? there : moved[items[i].use]) += items[i].bytes;
    std::int64_t most = 0;
    for (const auto& [use, bytes] : moved) most = std::max(most, bytes);
    if (there > 0) {
      EXPECT_LE(there + 2 * most, capacity);
    }
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!stays[i]) {
        EXPECT_GT(there + items[i].bytes + 2 * most, capacity);
      }
  }
}

}  // namespace
}  // namespace alpa
