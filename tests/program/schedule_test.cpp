#include "libalpa/program/schedule.h"

#include <gmock/gmock.h>

#include <string>

namespace alpa {
namespace {

/// "F0 F1 B0 F2 B1 B2"
std::string text(const std::vector<ScheduledSegment>& order) {
  std::string words;
  for (const ScheduledSegment& run : order)
    words += (words.empty() ? "" : " ") + std::string(run.segment == SegmentKind::forward ? "F" : "B") +
             std::to_string(run.micro_batch);
  return words;
}

TEST(Schedule, GpipeRunsAllForwardsFirst) {
  for (int stage = 0; stage < 2; ++stage)
    EXPECT_EQ(text(schedule_of(ScheduleKind::gpipe, stage, 2, 3)), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedule, OneFOneBAlternatesAfterAWarmUpThatShrinksTowardsTheLastStage) {
  EXPECT_EQ(text(schedule_of(ScheduleKind::one_f_one_b, 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(schedule_of(ScheduleKind::one_f_one_b, 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(schedule_of(ScheduleKind::one_f_one_b, 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, OneFOneBKeepsAtMostAsManyInFlightAsStagesFollow) {
  for (int stages = 1; stages <= 5; ++stages)
    for (int micro_batches = 1; micro_batches <= 7; ++micro_batches)
      for (int stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(most_in_flight(schedule_of(ScheduleKind::one_f_one_b, stage, stages, micro_batches)),
                  std::min(stages - stage, micro_batches));
        EXPECT_EQ(most_in_flight(schedule_of(ScheduleKind::gpipe, stage, stages, micro_batches)),
                  micro_batches);
      }
}

}  // namespace
}  // namespace alpa
