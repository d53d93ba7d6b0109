#include "libalpa/planner/search/lasting_bytes.h"

#include <gtest/gtest.h>

#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

// AdamW has two moments for each parameter, all of it in f32 here, and so is the sum of its gradients. Of the
// table, which the first layer and the last use, there are two sums.
TEST(LastingBytes, AreParametersTheStatesOfTheOptimizerAndSumsOfGradients) {
  const Graph graph = tiny_gpt(1);
  std::int64_t parameters = 0;
  for (const State& state : graph.states)
    if (state.is_parameter) parameters += byte_count(value_of(graph, state.value).type);
  const MemoryUse lasting = lasting_bytes(graph);
  EXPECT_EQ(lasting.parameters, parameters);
  EXPECT_EQ(lasting.optimizer, 2 * parameters);
  EXPECT_EQ(lasting.gradients, parameters + 32 * 16 * 4);
  EXPECT_EQ(lasting.total, lasting.parameters + lasting.optimizer + lasting.gradients);
}

TEST(LastingBytes, OfLayersAreThoseThatTheyUse) {
  const Graph graph = tiny_gpt(1);
  const int layers = static_cast<int>(graph.layers.size());
  const MemoryUse one = lasting_bytes(graph, 1, 2), two = lasting_bytes(graph, 1, 3);
  EXPECT_EQ(two.total, 2 * one.total);  // blocks are alike
  EXPECT_LT(two.total, lasting_bytes(graph).total);
  // The table is of the first layer and of the last.
  std::int64_t of_each = 0;
  for (int layer = 0; layer < layers; ++layer) of_each += lasting_bytes(graph, layer, layer + 1).parameters;
  EXPECT_EQ(of_each, lasting_bytes(graph).parameters + 32 * 16 * 4);
}

// What refusals rest on: whatever the plan, the devices of a stage have no less between them.
TEST(LastingBytes, NoPlanHoldsLess) {
  int plans = 0;
  for (const char* method : {"zero-3", "zero-2", "megatron", "data-parallel", "search", "inter-only"})
    for (const int micro_batches : {1, 2}) {
      PlannerOptions options;
      options.method = method;
      options.micro_batches = micro_batches;
      const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
      const Graph graph = tiny_gpt(plan.micro_batch_samples);
      const Program program = lower(graph, plan);
      for (const StageIndex s : plan.stages.indices()) {
        const StagePlan& stage = plan.stages[s];
        const MemoryUse& use = program.meshes[stage.mesh].memory;
        const std::int64_t devices = device_count(plan.meshes[stage.mesh].shape);
        const MemoryUse least = lasting_bytes(graph, stage.first_layer, stage.end_layer);
        EXPECT_GE(devices * use.parameters, least.parameters) << method;
        EXPECT_GE(devices * use.optimizer, least.optimizer) << method;
        EXPECT_GE(devices * use.gradients, least.gradients) << method;
        ++plans;
      }
    }
  EXPECT_GE(plans, 12);
}

}  // namespace
}  // namespace alpa
