#include "libalpa/planner/search/pipeline_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

/// What a stage does, as a simulation of the pipeline takes it.
struct StageWork {
  double forward_s = 0, backward_s = 0, update_s = 0;
  double forward_end_s = 0, backward_end_s = 0;  ///< of these, after what the neighbour waits for
};

StageFloor floor_of(const StageWork& work, int micro_batches) {
  const double micro_batch_s = work.forward_s + work.backward_s;
  const double turn_s = micro_batch_s - work.forward_end_s - work.backward_end_s;
  return {.forward_s = work.forward_s - work.forward_end_s,
          .turn_s = turn_s,
          .inputs_turn_s = turn_s,
          .backward_s = work.backward_s,
          .micro_batch_s = micro_batch_s,
          .step_s = micro_batches * micro_batch_s + work.update_s,
          .update_s = work.update_s,
          .sends_last = work.forward_end_s == 0};
}

/// Each mesh does its runs in the schedule's order, each as soon as it can.
double simulated_s(const std::vector<StageWork>& works, const std::string& schedule, int micro_batches,
                   int stages_per_mesh = 1) {
  const int stages = static_cast<int>(works.size());
  const std::vector<int> mesh_of = meshes_of_stages(find_schedule(schedule), stages, stages_per_mesh);
  const auto orders = mesh_orders(find_schedule(schedule), mesh_of, micro_batches);
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> free_at(orders.size(), 0);
  std::map<std::pair<int, int>, double> forward_at, backward_at;  // [stage, micro-batch] when it has left
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::size_t mesh = 0; mesh < orders.size(); ++mesh) {
      if (next[mesh] == orders[mesh].size()) continue;
      const StageRun run = orders[mesh][next[mesh]];
      const StageWork& work = works[run.stage];
      const bool forward = run.kind == SegmentKind::forward;
      double start = free_at[mesh];
      if (const int from = forward ? run.stage - 1 : run.stage + 1;
          run.kind != SegmentKind::backward_weights && from >= 0 && from < stages) {
        const auto& arrived = forward ? forward_at : backward_at;
        const auto at = arrived.find({from, run.micro_batch});
        if (at == arrived.end()) continue;
        start = std::max(start, at->second);
      }
      // Of a split backward the second part is what the neighbour does not wait for.
      double seconds = forward ? work.forward_s : work.backward_s;
      double end = forward ? work.forward_end_s : work.backward_end_s;
      if (run.kind == SegmentKind::backward_inputs) seconds -= end, end = 0;
      if (run.kind == SegmentKind::backward_weights) seconds = end;
      free_at[mesh] = start + seconds;
      if (run.kind != SegmentKind::backward_weights)
        (forward ? forward_at : backward_at)[{run.stage, run.micro_batch}] = free_at[mesh] - end;
      ++next[mesh];
      progress = true;
    }
  }
  for (std::size_t mesh = 0; mesh < orders.size(); ++mesh) EXPECT_EQ(next[mesh], orders[mesh].size());
  for (int s = 0; s < stages; ++s) free_at[mesh_of[s]] += works[s].update_s;
  return std::ranges::max(free_at);
}

std::vector<StageWork> random_stages(std::mt19937& draw, int stages) {
  std::vector<StageWork> works;
  for (int s = 0; s < stages; ++s) {
    StageWork work{1.0 + draw() % 20, 1.0 + draw() % 30, 1.0 * (draw() % 60)};
    if (draw() % 4 == 0) work.forward_end_s = work.forward_s / 5;
    work.backward_end_s = work.backward_s * (draw() % 5) / 10;
    works.push_back(work);
  }
  return works;
}

std::vector<StageFloor> floors_of(const std::vector<StageWork>& works, int micro_batches) {
  std::vector<StageFloor> floors;
  for (const StageWork& work : works) floors.push_back(floor_of(work, micro_batches));
  return floors;
}

TEST(LeastPipeline, IsNotAboveWhatAnyScheduleTakes) {
  std::mt19937 draw(1);
  for (const std::string& schedule : schedule_names(1))
    for (int round = 0; round < 300; ++round) {
      const int stages = 1 + static_cast<int>(draw() % 6), micro_batches = 1 + static_cast<int>(draw() % 12);
      const std::vector<StageWork> works = random_stages(draw, stages);
      const double least =
          least_pipeline_s(floors_of(works, micro_batches), form_of(schedule, micro_batches, stages));
      const double taken = simulated_s(works, schedule, micro_batches);
      EXPECT_LE(least, taken * (1 + 1e-12)) << schedule << ", round " << round;  // sums in another order
      EXPECT_GE(least, 0.3 * taken) << schedule << ", round " << round;  // one that is worth something
      const double least_of_any =
          least_pipeline_s(floors_of(works, micro_batches), kAnySchedule, 1, micro_batches);
      EXPECT_LE(least_of_any, taken * (1 + 1e-12)) << schedule << ", round " << round;
      EXPECT_GE(least_of_any, 0.3 * taken) << schedule << ", round " << round;
    }
}

TEST(LeastPipeline, OfStagesThatShareMeshesIsNotAboveWhatAnyScheduleTakes) {
  std::mt19937 draw(1);
  for (const int per_mesh : {2, 3, 4})
    for (const std::string& schedule : schedule_names(per_mesh))
      for (int round = 0; round < 200; ++round) {
        const int meshes = 1 + static_cast<int>(draw() % 5),
                  micro_batches = 1 + static_cast<int>(draw() % 12);
        const std::vector<StageWork> works = random_stages(draw, meshes * per_mesh);
        const std::vector<StageFloor> floors = floors_of(works, micro_batches);
        const double taken = simulated_s(works, schedule, micro_batches, per_mesh);
        for (const char* asked : {schedule.c_str(), kAnySchedule}) {
          const double least = least_pipeline_s(floors, asked, per_mesh, micro_batches);
          EXPECT_LE(least, taken * (1 + 1e-12)) << schedule << ", round " << round;
          EXPECT_GE(least, 0.15 * taken) << schedule << ", round " << round;
        }
      }
}

TEST(LeastPipeline, IsWhatEqualStagesTake) {
  const StageWork work{1, 1, 0};
  for (const int stages : {1, 2, 5})
    for (const int micro_batches : {1, 2, 5, 16}) {
      const std::vector<StageWork> works(static_cast<std::size_t>(stages), work);
      EXPECT_DOUBLE_EQ(
          least_pipeline_s(floors_of(works, micro_batches), form_of("1f1b", micro_batches, stages)),
          2.0 * (micro_batches + stages - 1));
    }
}

// Of split backwards the first stage waits for its first one no less, but for none behind its last.
TEST(LeastPipeline, IsWhatEqualStagesWithSplitBackwardsTake) {
  const StageWork work{.forward_s = 1, .backward_s = 2, .backward_end_s = 1};
  for (const int stages : {2, 3, 5})
    for (const int micro_batches : {8, 16}) {
      const std::vector<StageWork> works(static_cast<std::size_t>(stages), work);
      const double least =
          least_pipeline_s(floors_of(works, micro_batches), form_of("split-1f1b", micro_batches, stages));
      EXPECT_DOUBLE_EQ(least, 3.0 * micro_batches + stages - 1) << stages;
      EXPECT_DOUBLE_EQ(least, simulated_s(works, "split-1f1b", micro_batches)) << stages;
    }
}

// An update comes after a stage's last backward, so that of the first stage is waited for.
TEST(LeastPipeline, IsWhatEqualStagesTakeWithAnUpdate) {
  for (const int stages : {1, 2, 5}) {
    const std::vector<StageWork> works(static_cast<std::size_t>(stages), {1, 1, 4});
    const double least = least_pipeline_s(floors_of(works, 8), form_of("1f1b", 8, stages));
    EXPECT_DOUBLE_EQ(least, 2.0 * (8 + stages - 1) + 4) << stages;
    EXPECT_DOUBLE_EQ(least, simulated_s(works, "1f1b", 8)) << stages;
  }
}

// What stages take in micro-batches and in their updates is known apart, so a fast last stage does not hide
// the update of one before it.
TEST(LeastPipeline, CountsAnUpdateBehindASlowLaterStage) {
  std::vector<StageWork> works{{1, 1, 4}, {2, 2, 0}};
  const double least = least_pipeline_s(floors_of(works, 8), form_of("1f1b", 8, 2));
  EXPECT_DOUBLE_EQ(simulated_s(works, "1f1b", 8), 1 + 8 * 4 + 1 + 4);
  EXPECT_DOUBLE_EQ(least, 1 + 8 * 4 + 1 + 4);
}

// A slow early stage goes on with its next micro-batches while later ones have the first.
TEST(LeastPipeline, LetsASlowEarlyStageGoOn) {
  const std::vector<StageWork> works{{1, 1, 0}, {0.5, 0.5, 0}};
  EXPECT_DOUBLE_EQ(simulated_s(works, "1f1b", 2), 4);
  EXPECT_DOUBLE_EQ(least_pipeline_s(floors_of(works, 2), form_of("1f1b", 2, 2)), 4);
}

FloorChoices random_floors(std::mt19937& draw, int layers, int devices, int micro_batches) {
  const std::vector<int> sizes{1, 2, 4};
  FloorChoices choices(layers, StagePlaces(devices, draw() % 2 ? 2 : devices), sizes);
  for (int first = 0; first < layers; ++first)
    for (int end = first + 1; end <= layers; ++end)
      for (const int size : sizes)
        for (int way = 0; way < 2; ++way) {
          if (draw() % 8 == 0) continue;
          StageWork work = random_stages(draw, 1).front();
          for (double* part :
               {&work.forward_s, &work.backward_s, &work.update_s, &work.forward_end_s, &work.backward_end_s})
            *part *= 1.0 * (end - first) / size;
          const int most_in_flight = static_cast<int>(draw() % 6);
          for (const StageSides& sides : choices.places().all_sides(size, first == 0, end == layers)) {
            StageWork placed = work;
            placed.forward_s += sides.before_is_apart ? 2 : 0;
            placed.backward_s += sides.after_is_apart ? 3 : 0;
            choices.offer(first, end, size, sides, {most_in_flight, floor_of(placed, micro_batches)});
          }
        }
  return choices;
}

/// The least bound for each number of stages, by looking at every pipeline.
std::map<std::size_t, double> by_looking_at_all(const FloorChoices& choices, const PipelineForm& form) {
  std::map<std::size_t, double> least;
  std::vector<StageFloor> floors;
  const std::function<void(std::size_t, int, int)> extend = [&](std::size_t left, int first, int devices) {
    if (left == 0) {
      if (first != choices.layers() || devices != 0) return;
      double& known = least.try_emplace(floors.size(), infinity).first->second;
      known = std::min(known, least_pipeline_s(floors, form));
      return;
    }
    for (std::size_t s = 0; s < choices.sizes().size(); ++s)
      for (int end = first + 1; end <= choices.layers() && choices.sizes()[s] <= devices; ++end)
        for (const FloorChoices::Way& way :
             choices.ways(first, end, s, choices.places().sides(choices.sizes()[s], devices))) {
          if (way.most_in_flight < form.in_flight[left]) continue;
          floors.push_back(way.floor);
          extend(left - 1, end, devices - choices.sizes()[s]);
          floors.pop_back();
        }
  };
  for (std::size_t stages = 1; stages < form.in_flight.size(); ++stages) extend(stages, 0, choices.devices());
  return least;
}

TEST(LeastPipelines, AreNotAboveAnyPipeline) {
  std::mt19937 draw(2);
  double sum = 0, sum_of_all = 0;
  for (int round = 0; round < 100; ++round) {
    const int micro_batches = 1 + static_cast<int>(draw() % 8);
    const FloorChoices choices = random_floors(draw, 5, 6, micro_batches);
    const PipelineForm form = form_of(round % 3 == 0 ? "zero-bubble" : "1f1b", micro_batches, 5);
    const std::map<std::size_t, double> least = by_looking_at_all(choices, form);
    const std::vector<LeastPipeline> found = least_pipelines(choices, form, 1).value();
    EXPECT_EQ(found.size(), least.size()) << "round " << round;
    for (const LeastPipeline& pipeline : found) {
      EXPECT_LE(pipeline.seconds, least.at(pipeline.stages.size()) * (1 + 1e-12)) << "round " << round;
      sum += pipeline.seconds;
      sum_of_all += least.at(pipeline.stages.size());
      int devices = 0;
      for (const LeastPipeline::Stage& stage : pipeline.stages) devices += stage.devices;
      EXPECT_EQ(devices, choices.devices());
      EXPECT_EQ(pipeline.stages.back().end_layer, choices.layers());
    }
  }
  EXPECT_GT(sum, 0.999 * sum_of_all);  // what is lost where one pipeline stands for two
}

/// What is left out on the way takes too long, whatever comes before it.
TEST(LeastPipelines, BelowALimitAreThoseThatMayTakeLess) {
  std::mt19937 draw(4);
  int left_out = 0;
  for (int round = 0; round < 100; ++round) {
    const int micro_batches = 1 + static_cast<int>(draw() % 8);
    const FloorChoices choices = random_floors(draw, 5, 6, micro_batches);
    const PipelineForm form = form_of(round % 3 == 0 ? "zero-bubble" : "1f1b", micro_batches, 5);
    std::map<std::size_t, double> least = by_looking_at_all(choices, form);
    double limit_s = infinity;
    for (const auto& [stages, seconds] : least) limit_s = std::min(limit_s, 1.2 * seconds);
    const std::vector<LeastPipeline> found = least_pipelines(choices, form, 1, limit_s).value();
    for (const LeastPipeline& pipeline : found) {
      EXPECT_LT(pipeline.seconds, limit_s);
      EXPECT_LE(pipeline.seconds, least.at(pipeline.stages.size()) * (1 + 1e-12)) << "round " << round;
      least.erase(pipeline.stages.size());
    }
    for (const auto& [stages, seconds] : least) EXPECT_GE(seconds, limit_s) << "round " << round;
    left_out += static_cast<int>(least.size());
  }
  EXPECT_GT(left_out, 0);
}

// That none was found is no bound where none was looked for.
TEST(LeastPipelines, AreNotKnownOnceStopped) {
  std::mt19937 draw(5);
  const FloorChoices choices = random_floors(draw, 5, 6, 4);
  const FillOptions stopped{.stops = [] { return true; }};
  EXPECT_FALSE(least_pipelines(choices, form_of("1f1b", 4, 5), 1, infinity, stopped).has_value());
}

TEST(LeastPipelines, KeepTheLeastNumberOfStages) {
  std::mt19937 draw(3);
  const FloorChoices choices = random_floors(draw, 5, 6, 4);
  const std::vector<LeastPipeline> found = least_pipelines(choices, form_of("1f1b", 4, 5), 3).value();
  for (const LeastPipeline& pipeline : found) EXPECT_GE(pipeline.stages.size(), 3u);
}

}  // namespace
}  // namespace alpa
