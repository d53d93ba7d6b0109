#include "libalpa/planner/search/space_bounds.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

constexpr PlanSpace kNarrow{2, false}, kWide{2, true};

TEST(SearchedSpaces, EachNumberOfMicroBatchesCountsInTheWidestSpaceInWhichItIsBounded) {
  SearchedSpaces spaces;
  spaces.bound(kNarrow, 8) = {3, 4};
  spaces.bound(kWide, 8) = {2, 2.5};
  spaces.bound(kNarrow, 16) = {2.5, 5};
  const std::vector<SpaceBounds> widest = spaces.widest();
  ASSERT_EQ(widest.size(), 2u);
  EXPECT_EQ(widest[0].space, kWide);
  EXPECT_EQ(widest[0].of_count.size(), 1u);
  EXPECT_EQ(widest[0].of_count.at(8).step_s, 2);
  EXPECT_EQ(widest[1].space, kNarrow);
  EXPECT_EQ(widest[1].of_count.size(), 1u);
  EXPECT_EQ(widest[1].of_count.at(16).step_s, 2.5);
  EXPECT_EQ(least_bound(widest).step_s, 2);
  EXPECT_EQ(least_bound(widest).of_first_s, 2.5);
  EXPECT_EQ(spaces.counts(), (std::vector{8, 16}));
}

TEST(SearchedSpaces, WhatThereWasNoTimeForLeavesWhatWasKnown) {
  SearchedSpaces spaces;
  spaces.bound(kNarrow, 8) = {3, 3};
  spaces.bound(kWide, 8);  // the search did not come to say
  const std::vector<SpaceBounds> widest = spaces.widest();
  ASSERT_EQ(widest.size(), 1u);
  EXPECT_EQ(widest[0].space, kNarrow);
  EXPECT_EQ(least_bound(widest).step_s, 3);
}

TEST(SearchedSpaces, OfNothingNothingIsBounded) {
  EXPECT_TRUE(SearchedSpaces().widest().empty());
  EXPECT_EQ(least_bound({}).step_s, infinity);
}

}  // namespace
}  // namespace alpa
