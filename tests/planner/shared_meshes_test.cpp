// Plans whose stages share meshes.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/schedule/schedule.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

PlanningModel ten_layers() { return small_model(8); }

TEST(SharedMeshes, AreChosenWhereThatShortensThePipeline) {
  PlannerOptions options;
  options.method = "inter-only";
  options.micro_batches = 4;
  const Plan plan = plan_quietly(ten_layers(), small_cluster(4), options);
  EXPECT_EQ(plan.stages.size(), 2 * plan.meshes.size());
  EXPECT_TRUE(find_schedule(plan.schedule).shares_meshes()) << plan.schedule;
  for (const std::string& schedule : schedule_names(1)) {
    options.schedule = schedule;
    EXPECT_LT(plan.prediction.step_s,
              plan_quietly(ten_layers(), small_cluster(4), options).prediction.step_s);
  }
}

TEST(SharedMeshes, HaveTheScheduleThatIsAskedFor) {
  for (const std::string& schedule : schedule_names(2))
    for (const char* method : {"inter-only", "search", "megatron"}) {
      PlannerOptions options;
      options.method = method;
      options.micro_batches = 4;
      options.schedule = schedule;
      options.constraints.all = {{StageCount{.least = 4, .most = 64}, "limits.toml:1"}};
      const Plan plan = plan_quietly(ten_layers(), small_cluster(4), options);
      EXPECT_EQ(plan.schedule, schedule) << method;
      EXPECT_LT(plan.meshes.size(), plan.stages.size()) << method;
      const Graph graph = ten_layers().graph(plan.micro_batch_samples);
      EXPECT_NO_THROW(check_plan(plan, graph));
      EXPECT_NO_THROW(verify(lower(graph, plan)));
      for (const MeshPrediction& mesh : plan.prediction.meshes)
        EXPECT_LE(mesh.memory.total, plan.cluster.memory_bytes);
      EXPECT_LE(plan.prediction.lower_bound_s, plan.prediction.step_s);
    }
}

// One stage has every schedule, and no other stages to share its mesh with.
TEST(SharedMeshes, AreNotNeededForOneStage) {
  for (const std::string& schedule : schedule_names(2)) {
    PlannerOptions options;
    options.method = "intra-only";
    options.schedule = schedule;
    EXPECT_EQ(plan_quietly(ten_layers(), small_cluster(4), options).stages.size(), 1u) << schedule;
    options.method = "search";
    EXPECT_EQ(plan_quietly(ten_layers(), small_cluster(1), options).stages.size(), 1u) << schedule;
  }
}

// What does not fit on a mesh beside another stage is solved again with a part of the memory.
TEST(SharedMeshes, FitIntoTheirMemoryTogether) {
  PlannerOptions options;
  options.method = "inter-only";
  options.micro_batches = 8;
  options.schedule = "zero-bubble-v";
  const PlanningModel model{"tiny", "", 64, [](std::int64_t samples) { return tiny_gpt(samples, 16); }};
  Cluster cluster = small_cluster(2);
  const Plan roomy = plan_quietly(model, cluster, options);
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : roomy.prediction.meshes) most = std::max(most, mesh.memory.total);
  cluster.memory_bytes = most * 19 / 20;
  const Plan tight = plan_quietly(model, cluster, options);
  EXPECT_EQ(tight.schedule, "zero-bubble-v");
  for (const MeshPrediction& mesh : tight.prediction.meshes)
    EXPECT_LE(mesh.memory.total, cluster.memory_bytes);
  EXPECT_GT(tight.prediction.step_s, roomy.prediction.step_s);
}

// V-Min holds the fewest micro-batches, and interleaved the most.
TEST(SharedMeshes, OfAPinHaveWhicheverScheduleFits) {
  const PlanningModel model{"tiny", "", 64, [](std::int64_t samples) { return tiny_gpt(samples, 16); }};
  const auto planned = [&](const std::string& schedule, std::int64_t memory_bytes) {
    std::string pin = "micro_batches = 16\nstages_per_mesh = 2\n" + schedule;
    for (const int layers : {5, 4, 4, 5})
      pin += "[[stage]]\nlayers = " + std::to_string(layers) + "\nmesh = [1]\n";
    PlannerOptions options;
    options.pin = parse_pin(pin, "pin");
    options.rematerialize = Rematerialize::never;
    Cluster cluster = small_cluster(2);
    cluster.memory_bytes = memory_bytes;
    return plan_quietly(model, cluster, options);
  };
  std::map<std::string, std::int64_t> taken;
  for (const std::string& schedule : schedule_names(2)) {
    const Plan plan = planned("schedule = \"" + schedule + "\"\n", 1 << 30);
    EXPECT_EQ(plan.schedule, schedule);
    for (const MeshPrediction& mesh : plan.prediction.meshes)
      taken[schedule] = std::max(taken[schedule], mesh.memory.total);
  }
  EXPECT_LT(taken["v-min"], taken["interleaved"]);
  EXPECT_EQ(planned("", taken["v-min"] + 4096).schedule, "v-min");
}

TEST(Bound, ByComputationAloneHoldsWhateverOverlapsAndSharesMeshes) {
  const auto step = [](const std::string& method, const std::string& schedule, const std::string& overlap) {
    PlannerOptions options;
    options.method = method;
    options.schedule = schedule;
    options.overlap = overlap;
    options.micro_batches = 4;
    const PlanningModel model{"tiny", "", 32, [](std::int64_t samples) { return tiny_gpt(samples, 8); }};
    return plan_quietly(model, small_cluster(4), options).prediction;
  };
  const Prediction bounded = step("search", kAnySchedule, "all");
  EXPECT_THAT(bounded.bound_covers, HasSubstr("by computation alone"));
  EXPECT_GT(bounded.lower_bound_s, 0.3 * bounded.step_s);
  for (const char* method : {"data-parallel", "zero-3", "tensor", "sequence", "ring", "inter-only"})
    for (const Word<Overlap>& overlap : overlap_words())
      EXPECT_LE(bounded.lower_bound_s, step(method, kAnySchedule, std::string(overlap.name)).step_s)
          << method;
  for (const std::string& schedule : schedule_names(2)) {
    const Prediction shared = step("inter-only", schedule, "all");
    EXPECT_LE(bounded.lower_bound_s, shared.step_s) << schedule;
    EXPECT_LE(shared.lower_bound_s, shared.step_s) << schedule;
    EXPECT_GT(shared.lower_bound_s, 0.3 * shared.step_s) << schedule;
  }
}

}  // namespace
}  // namespace alpa
