#include "libalpa/schedule/schedule.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

/// "F0 F1 B0 F2 I1 W1"; with stages "0F0 2F0"
std::string text(const std::vector<StageRun>& order, bool with_stages = false) {
  const std::map<SegmentKind, std::string> letters{{SegmentKind::forward, "F"},
                                                   {SegmentKind::backward, "B"},
                                                   {SegmentKind::backward_inputs, "I"},
                                                   {SegmentKind::backward_weights, "W"}};
  std::string words;
  for (const StageRun& run : order)
    words += (words.empty() ? "" : " ") + (with_stages ? std::to_string(run.stage) : "") +
             letters.at(run.kind) + std::to_string(run.micro_batch);
  return words;
}

std::string text(const char* schedule, int stage, int stages, int micro_batches) {
  return text(find_schedule(schedule).order(StageIndex(stage), stages, micro_batches));
}

int in_flight(const char* schedule, int stage, int stages, int micro_batches) {
  return most_in_flight(find_schedule(schedule).order(StageIndex(stage), stages, micro_batches));
}

TEST(Gpipe, RunsAllForwardsFirst) {
  for (int stage = 0; stage < 2; ++stage) EXPECT_EQ(text("gpipe", stage, 2, 3), "F0 F1 F2 B0 B1 B2");
}

TEST(OneFOneB, AlternatesAfterAWarmUpThatShrinksTowardsTheLastStage) {
  EXPECT_EQ(text("1f1b", 0, 3, 4), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text("1f1b", 1, 3, 4), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text("1f1b", 2, 3, 4), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(EagerOneFOneB, StartsWithMoreForwards) {
  EXPECT_EQ(text("eager-1f1b", 0, 2, 4), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text("eager-1f1b", 1, 2, 4), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(SplitOneFOneB, LeavesGradientsOfWeightsForLaterWhereAStageWaitsForTheOthers) {
  EXPECT_EQ(text("split-1f1b", 0, 3, 4), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text("split-1f1b", 1, 3, 4), "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  EXPECT_EQ(text("split-1f1b", 2, 3, 4), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  EXPECT_EQ(text("split-1f1b", 2, 3, 1), "F0 I0 W0");
}

TEST(ZeroBubble, RunsMoreForwardsAheadAndLeavesMoreForLater) {
  EXPECT_EQ(text("zero-bubble", 0, 3, 6), "F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5");
  EXPECT_EQ(text("zero-bubble", 1, 3, 6), "F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5");
  EXPECT_EQ(text("zero-bubble", 2, 3, 6), "F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5");
  EXPECT_EQ(text("zero-bubble", 2, 3, 1), "F0 I0 W0");
}

/// Time units in which each stage waits between its first run and its last, where a forward and either half
/// of a backward take one and messages none.
std::vector<int> idle_units(const char* schedule, int stages, int micro_batches) {
  const int never = -1;
  std::map<std::pair<int, int>, int> forward_end, gradient_end;  // of (stage, micro-batch)
  const auto end_of = [&](const auto& ends, int stage, int micro_batch) {
    const auto found = ends.find({stage, micro_batch});
    return found == ends.end() ? never : found->second;
  };
  std::vector<std::vector<StageRun>> orders;
  for (int s = 0; s < stages; ++s)
    orders.push_back(find_schedule(schedule).order(StageIndex(s), stages, micro_batches));
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<int> now(orders.size(), 0), idle(orders.size(), 0);
  for (bool moves = true; moves;) {
    moves = false;
    for (int s = 0; s < stages; ++s) {
      const std::size_t i = static_cast<std::size_t>(s);
      if (next[i] == orders[i].size()) continue;
      const StageRun run = orders[i][next[i]];
      int ready = 0;
      if (run.kind == SegmentKind::forward && s > 0) ready = end_of(forward_end, s - 1, run.micro_batch);
      if (run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_inputs)
        ready = s + 1 < stages ? end_of(gradient_end, s + 1, run.micro_batch)
                               : end_of(forward_end, s, run.micro_batch);
      if (ready == never) continue;
      const int begin = std::max(now[i], ready);
      if (next[i] > 0) idle[i] += begin - now[i];
      now[i] = begin + (run.kind == SegmentKind::backward ? 2 : 1);
      if (run.kind == SegmentKind::forward) forward_end[{s, run.micro_batch}] = now[i];
      if (run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_inputs)
        gradient_end[{s, run.micro_batch}] = now[i];
      ++next[i];
      moves = true;
    }
  }
  for (std::size_t i = 0; i < orders.size(); ++i) EXPECT_EQ(next[i], orders[i].size()) << schedule;
  return idle;
}

TEST(ZeroBubble, KeepsNoStageWaitingWhereAllPartsTakeEquallyLong) {
  for (int stages = 1; stages <= 6; ++stages)
    for (const int micro_batches : {2 * stages - 1, 2 * stages, 4 * stages})
      EXPECT_THAT(idle_units("zero-bubble", stages, micro_batches), testing::Each(0))
          << stages << " stages, " << micro_batches << " micro-batches";
  EXPECT_EQ(idle_units("1f1b", 4, 8)[0], 9);        // 3 (p - 1), as the authors say
  EXPECT_EQ(idle_units("split-1f1b", 4, 8)[0], 3);  // p - 1
}

TEST(Schedules, KeepAsManyMicroBatchesInFlightAsTheirAuthorsSay) {
  for (int stages = 1; stages <= 5; ++stages)
    for (int micro_batches = 1; micro_batches <= 7; ++micro_batches)
      for (int stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(in_flight("gpipe", stage, stages, micro_batches), micro_batches);
        EXPECT_EQ(in_flight("1f1b", stage, stages, micro_batches), std::min(stages - stage, micro_batches));
        EXPECT_EQ(in_flight("eager-1f1b", stage, stages, micro_batches),
                  std::min(2 * (stages - stage) - 1, micro_batches));
        EXPECT_LE(in_flight("split-1f1b", stage, stages, micro_batches), std::min(stages, micro_batches));
        EXPECT_LE(in_flight("zero-bubble", stage, stages, micro_batches),
                  std::min(2 * stages - 1, micro_batches));
      }
}

TEST(Schedules, HoldNoFewerMicroBatchesThanTheFirst) {
  for (const PipelineSchedule& schedule : schedules())
    for (int stages = 1; stages <= 5; ++stages)
      for (int micro_batches = 1; micro_batches <= 7; ++micro_batches)
        for (int stage = 0; stage < stages; ++stage)
          EXPECT_GE(in_flight(schedule.name, stage, stages, micro_batches),
                    in_flight(schedules().front().name, stage, stages, micro_batches))
              << schedule.name;
}

TEST(Schedules, ThatDifferAreAllWhereThereIsEnoughToDo) {
  EXPECT_EQ(differing_schedules(4, 8), schedule_names());
}

TEST(Schedules, ThatDifferAreOneForOneStage) {
  EXPECT_THAT(differing_schedules(1, 8), testing::ElementsAre("1f1b"));
}

// Gradients of weights may still wait until the stage before has its gradient.
TEST(Schedules, ThatDifferWithOneMicroBatchAreOfWholeAndOfSplitBackwards) {
  EXPECT_THAT(differing_schedules(3, 1), testing::ElementsAre("1f1b", "split-1f1b"));
}

// Of any schedule: each micro-batch once forward and once backward, a part of the backward after the other.
TEST(Schedules, TakeEveryMicroBatchOnceThroughEveryStage) {
  for (const PipelineSchedule& schedule : schedules())
    for (const int micro_batches : {1, 2, 3, 8})
      for (int stage = 0; stage < 4; ++stage) {
        std::map<int, std::string> of;
        for (const StageRun& run : schedule.order(StageIndex(stage), 4, micro_batches))
          of[run.micro_batch] += std::string(segment_name(run.kind)) + ", ";
        EXPECT_EQ(std::ssize(of), micro_batches) << schedule.name;
        for (const auto& [micro_batch, segments] : of)
          EXPECT_THAT(segments, testing::AnyOf("forward, backward, ",
                                               "forward, backward of inputs, backward of weights, "))
              << schedule.name;
      }
}

TEST(MeshOrders, AreTheStagesOwnWhereEachHasAMesh) {
  for (const PipelineSchedule& schedule : schedules()) {
    const auto orders = mesh_orders(schedule, {2, 0, 1}, 4);
    const std::vector<int> stage_of_mesh{1, 2, 0};
    for (std::size_t mesh = 0; mesh < 3; ++mesh)
      EXPECT_EQ(text(orders[mesh]), text(schedule.name, stage_of_mesh[mesh], 3, 4)) << schedule.name;
  }
}

TEST(MeshOrders, OfStagesThatShareAMeshRunWhatCanStartFirst) {
  const auto orders = mesh_orders(find_schedule("1f1b"), {0, 1, 0, 1}, 2);
  EXPECT_EQ(text(orders[0], true), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(text(orders[1], true), "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1");
}

TEST(MeshOrders, KeepTheOrderOfEachStage) {
  for (const PipelineSchedule& schedule : schedules())
    for (const std::vector<int>& meshes : std::vector<std::vector<int>>{
             {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 0}, {0, 1, 2, 0}}) {
      std::vector<std::vector<StageRun>> of_stage(4);
      for (const auto& order : mesh_orders(schedule, meshes, 5))
        for (const StageRun& run : order) of_stage[run.stage].push_back(run);
      for (int stage = 0; stage < 4; ++stage)
        EXPECT_EQ(text(of_stage[stage]), text(schedule.name, stage, 4, 5)) << schedule.name;
    }
}

TEST(Schedules, AreFoundByName) {
  for (const PipelineSchedule& schedule : schedules())
    EXPECT_EQ(find_schedule(schedule.name).order, schedule.order);
  EXPECT_THAT([] { find_schedule("2f2b"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("unknown schedule '2f2b'")));
}

}  // namespace
}  // namespace alpa
