#include "libalpa/planner/search/stage_choices.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(StageChoices, KeepWaysThatNoOtherBeats) {
  StageChoices choices(1, StagePlaces(1, 1), {1}, {0, 2});
  choices.offer(0, 1, 1, {}, {4, {2, 10}, 0});
  choices.offer(0, 1, 1, {}, {1, {1, 5}, 1});   // faster, but with memory for less
  choices.offer(0, 1, 1, {}, {3, {3, 11}, 2});  // beaten by the first
  choices.offer(0, 1, 1, {}, {2, {3, 9}, 3});   // slower at first, faster then
  EXPECT_EQ(choices.ways(0, 1, 0, {}).size(), 3u);
  EXPECT_EQ(choices.fastest(1, 0, 1, 0, {}, {})->id, 0);
  EXPECT_EQ(choices.fastest(1, 0, 1, 0, {}, {9})->id, 3);
  EXPECT_EQ(choices.fastest(1, 0, 1, 0, {}, {5}), nullptr);
  choices.offer(0, 1, 1, {}, {4, {2, 10, 1}, 4});  // likewise beaten
  EXPECT_EQ(choices.ways(0, 1, 0, {}).size(), 3u);
}

TEST(PipelineSeconds, HaveTheSlowestUpdateAfterTheSlowestMicroBatches) {
  EXPECT_EQ(pipeline_seconds({{1, 10, 3}, {2, 20, 1}, {1, 5, 4}}), 4 + 20 + 4);
}

}  // namespace
}  // namespace alpa
