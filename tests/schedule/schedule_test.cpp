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
  return text(find_schedule(schedule).of_stage(StageIndex(stage), stages, micro_batches));
}

int in_flight(const char* schedule, int stage, int stages, int micro_batches) {
  return most_in_flight(find_schedule(schedule).of_stage(StageIndex(stage), stages, micro_batches));
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

std::vector<std::vector<StageRun>> orders_of(const std::string& schedule, int meshes, int stages_per_mesh,
                                             int micro_batches) {
  const PipelineSchedule& found = find_schedule(schedule);
  return mesh_orders(found, meshes_of_stages(found, meshes * stages_per_mesh, stages_per_mesh),
                     micro_batches);
}

/// When a mesh begins its first run and ends its last, and what it waits for in between, in units of time.
struct Spent {
  int begin = -1, end = 0, idle = 0;
};

/// Where a forward of a stage and either half of its backward take one unit and messages none.
std::vector<Spent> spent(const std::vector<std::vector<StageRun>>& orders, int stages) {
  const int never = -1;
  std::map<std::pair<int, int>, int> forward_end, gradient_end;  // of (stage, micro-batch)
  const auto end_of = [&](const auto& ends, int stage, int micro_batch) {
    const auto found = ends.find({stage, micro_batch});
    return found == ends.end() ? never : found->second;
  };
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<Spent> spent(orders.size());
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t mesh = 0; mesh < orders.size(); ++mesh) {
      if (next[mesh] == orders[mesh].size()) continue;
      const auto& [kind, micro_batch, stage] = orders[mesh][next[mesh]];
      const bool is_gradient = kind == SegmentKind::backward || kind == SegmentKind::backward_inputs;
      int ready = 0;
      if (kind == SegmentKind::forward && stage > 0) ready = end_of(forward_end, stage - 1, micro_batch);
      if (is_gradient)
        ready = stage + 1 < stages ? end_of(gradient_end, stage + 1, micro_batch)
                                   : end_of(forward_end, stage, micro_batch);
      if (ready == never) continue;
      Spent& of = spent[mesh];
      const int begin = std::max(of.end, ready);
      if (of.begin < 0) of.begin = begin;
      if (next[mesh] > 0) of.idle += begin - of.end;
      of.end = begin + (kind == SegmentKind::backward ? 2 : 1);
      if (kind == SegmentKind::forward) forward_end[{stage, micro_batch}] = of.end;
      if (is_gradient) gradient_end[{stage, micro_batch}] = of.end;
      ++next[mesh];
      moves = true;
    }
  }
  for (std::size_t mesh = 0; mesh < orders.size(); ++mesh) EXPECT_EQ(next[mesh], orders[mesh].size());
  return spent;
}

std::vector<int> idle_units(const std::string& schedule, int meshes, int micro_batches,
                            int stages_per_mesh = 1) {
  std::vector<int> idle;
  for (const Spent& of :
       spent(orders_of(schedule, meshes, stages_per_mesh, micro_batches), meshes * stages_per_mesh))
    idle.push_back(of.idle);
  return idle;
}

/// Units that the step takes longer than the work of a mesh.
int bubble(const std::string& schedule, int meshes, int stages_per_mesh, int micro_batches) {
  int end = 0;
  for (const Spent& of :
       spent(orders_of(schedule, meshes, stages_per_mesh, micro_batches), meshes * stages_per_mesh))
    end = std::max(end, of.end);
  return end - 3 * stages_per_mesh * micro_batches;
}

/// Micro-batches that the fullest mesh holds at once, of any of its stages.
int most_held(const std::string& schedule, int meshes, int stages_per_mesh, int micro_batches) {
  int most = 0;
  for (const auto& order : orders_of(schedule, meshes, stages_per_mesh, micro_batches))
    most = std::max(most, most_in_flight(order));
  return most;
}

TEST(ZeroBubble, KeepsNoStageWaitingWhereAllPartsTakeEquallyLong) {
  for (int stages = 1; stages <= 6; ++stages)
    for (const int micro_batches : {2 * stages - 1, 2 * stages, 4 * stages})
      EXPECT_THAT(idle_units("zero-bubble", stages, micro_batches), testing::Each(0))
          << stages << " stages, " << micro_batches << " micro-batches";
  EXPECT_EQ(idle_units("1f1b", 4, 8)[0], 9);        // 3 (p - 1), as the authors say
  EXPECT_EQ(idle_units("split-1f1b", 4, 8)[0], 3);  // p - 1
}

TEST(Interleaved, TakesAGroupOfMicroBatchesThroughItsStagesInTurn) {
  const auto orders = orders_of("interleaved", 2, 2, 4);
  EXPECT_EQ(text(orders[0], true), "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(text(orders[1], true), "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

// Megatron-LM (SC'21) 2.2.1: the bubble is (p - 1) (F + B + W) / v, with F, B and W of all of a mesh's v
// stages; the memory is that of (p - 1) / (p v) micro-batches more than 1F1B has.
TEST(Interleaved, HasABubbleAsManyTimesShorterAsAMeshHasStages) {
  for (const int meshes : {1, 2, 3, 4, 6})
    for (const int per_mesh : {2, 3, 4})
      for (const int groups : {2, 3, 5}) {
        EXPECT_EQ(bubble("interleaved", meshes, per_mesh, groups * meshes), 3 * (meshes - 1));
        EXPECT_EQ(most_held("interleaved", meshes, per_mesh, groups * meshes),
                  meshes * per_mesh + meshes - 1);
      }
}

TEST(ZeroBubbleV, DoesTheBackwardOfItsSecondStageWhileTheFirstHasForwards) {
  const auto orders = orders_of("zero-bubble-v", 2, 2, 4);
  EXPECT_EQ(text(orders[0], true),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0B0 3F2 3I2 3W2 0B1 3F3 3I3 3W3 0B2 0B3");
  EXPECT_EQ(
      text(orders[1], true),
      "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3");
}

// Zero Bubble (ICLR'24), table 2: nothing between a mesh's first run and its last, the memory of 1F1B.
TEST(ZeroBubbleV, KeepsNoMeshWaitingWhereAllPartsTakeEquallyLong) {
  for (int meshes = 1; meshes <= 6; ++meshes)
    for (const int micro_batches : {2 * meshes - 1, 2 * meshes, 4 * meshes + 1}) {
      EXPECT_THAT(idle_units("zero-bubble-v", meshes, micro_batches, 2), testing::Each(0));
      EXPECT_EQ(bubble("zero-bubble-v", meshes, 2, micro_batches), meshes - 1);
      EXPECT_LE(most_held("zero-bubble-v", meshes, 2, micro_batches), 2 * meshes);
    }
}

// Pipeline Parallelism with Controllable Memory (NeurIPS'24): bubbles of about p / 2 and 2 p / 3
// micro-batches, each of 6 units on a mesh; memory of floor((p + 2) / 2) and floor((p + 4) / 3) whole
// micro-batches, each of two stages.
TEST(VHalf, HasHalfTheMemoryAndHalfTheBubbleOf1F1B) {
  for (int meshes = 2; meshes <= 12; ++meshes)
    for (const int micro_batches : {2 * meshes, 3 * meshes + 1, 5 * meshes}) {
      EXPECT_LE(bubble("v-half", meshes, 2, micro_batches), 3 * meshes) << meshes;
      EXPECT_EQ(most_held("v-half", meshes, 2, micro_batches), 2 * ((meshes + 2) / 2)) << meshes;
    }
}

TEST(VMin, HasAThirdOfTheMemoryAndTwoThirdsOfTheBubbleOf1F1B) {
  for (int meshes = 2; meshes <= 12; ++meshes)
    for (const int micro_batches : {2 * meshes, 3 * meshes + 1, 5 * meshes}) {
      EXPECT_LE(bubble("v-min", meshes, 2, micro_batches), 4 * meshes) << meshes;
      EXPECT_EQ(most_held("v-min", meshes, 2, micro_batches), 2 * ((meshes + 4) / 3)) << meshes;
    }
}

/// What schedules of stages that share meshes may have.
struct Sharing {
  std::string schedule;
  int meshes, stages_per_mesh, micro_batches;
};
std::vector<Sharing> every_sharing() {
  std::vector<Sharing> all;
  for (const PipelineSchedule& schedule : schedules())
    for (int meshes = 1; meshes <= 6; ++meshes)
      for (const int per_mesh : {2, 3, 4})
        for (int micro_batches = 1; micro_batches <= 13; ++micro_batches)
          if (schedule.shares_meshes() && schedule.takes(per_mesh))
            all.push_back({schedule.name, meshes, per_mesh, micro_batches});
  return all;
}

TEST(SharedMeshes, TakeEveryMicroBatchOnceThroughEveryStageAndNeverWaitInACircle) {
  for (const auto& [schedule, meshes, per_mesh, micro_batches] : every_sharing()) {
    const auto orders = orders_of(schedule, meshes, per_mesh, micro_batches);
    const std::vector<int> mesh_of_stage =
        meshes_of_stages(find_schedule(schedule), meshes * per_mesh, per_mesh);
    std::map<std::pair<int, int>, std::string> of;
    for (std::size_t mesh = 0; mesh < orders.size(); ++mesh)
      for (const StageRun& run : orders[mesh]) {
        EXPECT_EQ(mesh_of_stage[run.stage], static_cast<int>(mesh));
        of[{run.stage, run.micro_batch}] += text({run}).substr(0, 1);
      }
    EXPECT_EQ(std::ssize(of), meshes * per_mesh * micro_batches);
    for (const auto& [_, runs] : of) EXPECT_THAT(runs, testing::AnyOf("FB", "FIW"));
    spent(orders, meshes * per_mesh);
  }
}

TEST(SharedMeshes, HaveStagesLoopedOrInAV) {
  EXPECT_THAT(meshes_of_stages(find_schedule("interleaved"), 6, 2), testing::ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(meshes_of_stages(find_schedule("v-min"), 6, 2), testing::ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_TRUE(runs_on(find_schedule("interleaved"), {2, 0, 2, 0, 2, 0}));
  EXPECT_FALSE(runs_on(find_schedule("interleaved"), {0, 1, 1, 0}));
  EXPECT_FALSE(runs_on(find_schedule("interleaved"), {0, 1, 2}));
  EXPECT_TRUE(runs_on(find_schedule("v-half"), {1, 0, 0, 1}));
  EXPECT_FALSE(runs_on(find_schedule("v-half"), {0, 1, 1, 0, 0, 1}));
  EXPECT_TRUE(runs_on(find_schedule("v-half"), {0}));
  EXPECT_TRUE(runs_on(find_schedule("1f1b"), {0, 0, 1}));
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
  for (const std::string& schedule : schedule_names(1))
    for (int stages = 1; stages <= 5; ++stages)
      for (int micro_batches = 1; micro_batches <= 7; ++micro_batches)
        for (int stage = 0; stage < stages; ++stage)
          EXPECT_GE(in_flight(schedule.c_str(), stage, stages, micro_batches),
                    in_flight("1f1b", stage, stages, micro_batches))
              << schedule;
}

TEST(Schedules, ThatDifferAreAllWhereThereIsEnoughToDo) {
  EXPECT_EQ(differing_schedules(4, 1, 8), schedule_names(1));
  EXPECT_EQ(differing_schedules(8, 2, 16), schedule_names(2));
  EXPECT_THAT(differing_schedules(12, 3, 8), testing::ElementsAre("interleaved"));
}

TEST(Schedules, ThatDifferAreOneForOneStage) {
  EXPECT_THAT(differing_schedules(1, 1, 8), testing::ElementsAre("1f1b"));
}

// Gradients of weights may still wait until the stage before has its gradient.
TEST(Schedules, ThatDifferWithOneMicroBatchAreOfWholeAndOfSplitBackwards) {
  EXPECT_THAT(differing_schedules(3, 1, 1), testing::ElementsAre("1f1b", "split-1f1b"));
}

// Of any schedule: each micro-batch once forward and once backward, a part of the backward after the other.
TEST(Schedules, TakeEveryMicroBatchOnceThroughEveryStage) {
  for (const std::string& schedule : schedule_names(1))
    for (const int micro_batches : {1, 2, 3, 8})
      for (int stage = 0; stage < 4; ++stage) {
        std::map<int, std::string> of;
        for (const StageRun& run : find_schedule(schedule).of_stage(StageIndex(stage), 4, micro_batches))
          of[run.micro_batch] += std::string(segment_name(run.kind)) + ", ";
        EXPECT_EQ(std::ssize(of), micro_batches) << schedule;
        for (const auto& [micro_batch, segments] : of)
          EXPECT_THAT(segments, testing::AnyOf("forward, backward, ",
                                               "forward, backward of inputs, backward of weights, "))
              << schedule;
      }
}

TEST(MeshOrders, AreTheStagesOwnWhereEachHasAMesh) {
  for (const std::string& schedule : schedule_names(1)) {
    const auto orders = mesh_orders(find_schedule(schedule), {2, 0, 1}, 4);
    const std::vector<int> stage_of_mesh{1, 2, 0};
    for (std::size_t mesh = 0; mesh < 3; ++mesh)
      EXPECT_EQ(text(orders[mesh]), text(schedule.c_str(), stage_of_mesh[mesh], 3, 4)) << schedule;
  }
}

TEST(MeshOrders, OfStagesThatShareAMeshRunWhatCanStartFirst) {
  const auto orders = mesh_orders(find_schedule("1f1b"), {0, 1, 0, 1}, 2);
  EXPECT_EQ(text(orders[0], true), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(text(orders[1], true), "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1");
}

TEST(MeshOrders, KeepTheOrderOfEachStage) {
  for (const std::string& schedule : schedule_names(1))
    for (const std::vector<int>& meshes : std::vector<std::vector<int>>{
             {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 0}, {0, 1, 2, 0}}) {
      std::vector<std::vector<StageRun>> of_stage(4);
      for (const auto& order : mesh_orders(find_schedule(schedule), meshes, 5))
        for (const StageRun& run : order) of_stage[run.stage].push_back(run);
      for (int stage = 0; stage < 4; ++stage)
        EXPECT_EQ(text(of_stage[stage]), text(schedule.c_str(), stage, 4, 5)) << schedule;
    }
}

TEST(Schedules, AreFoundByName) {
  for (const PipelineSchedule& schedule : schedules())
    EXPECT_EQ(find_schedule(schedule.name).described, schedule.described);
  EXPECT_THAT([] { find_schedule("2f2b"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("unknown schedule '2f2b'")));
}

}  // namespace
}  // namespace alpa
