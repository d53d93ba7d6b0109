#include "libalpa/planner/make_plan.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/planner/baselines.h"
#include "libalpa/program/lower.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Cluster small_cluster(int devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.devices_per_node = devices;
  cluster.memory_bytes = 1 << 30;
  cluster.memory_bytes_per_s = 1e10;
  cluster.f32_flops_per_s = 1e11;
  cluster.bf16_flops_per_s = 2e11;
  cluster.launch_s = 1e-6;
  cluster.within_node = {1e-6, 1e10};
  cluster.between_nodes = {1e-5, 1e9};
  return cluster;
}

PlanningModel small_model(int blocks = 2) {
  return {"tiny", "", 8, [blocks](std::int64_t samples) { return testing_models::tiny_gpt(samples, blocks); }};
}

Plan planned(const std::string& method, int devices, int micro_batches, int blocks = 2) {
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = method;
  options.micro_batches = micro_batches;
  return make_plan(small_model(blocks), CostModel(small_cluster(devices)), options, log);
}

std::map<std::string, int> collectives(const Plan& plan) {
  std::map<std::string, int> counts;
  const Program program = lower(testing_models::tiny_gpt(plan.micro_batch_samples), plan);
  for (const StageProgram& stage : program.stages)
    for (const auto& [name, count] : collective_counts(stage)) counts[name] += count;
  return counts;
}

class EveryMethod : public testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, MakesAPlanThatPassesItsOwnChecksAndTheVerifier) {
  const Plan plan = planned(GetParam(), GetParam() == "serial" ? 1 : 4, 2);
  EXPECT_GT(plan.prediction.step_s, 0);
  EXPECT_EQ(std::count_if(plan.prediction.candidates.begin(), plan.prediction.candidates.end(),
                          [](const Candidate& c) { return c.verdict == "chosen"; }),
            1);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod,
                         testing::Values("auto", "search", "serial", "data-parallel", "zero-1", "zero-2", "zero-3", "megatron",
                                         "sequence", "intra-only", "inter-only"),
                         [](const auto& method) {
                           std::string name = method.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Of the tiny GPT with two blocks. The table is used twice; its two gradients are added before they are reduced.
constexpr int kParameters = 2 + 2 * 16 + 2;

TEST(DataParallel, ReducesEachGradientOncePerStepWhateverTheMicroBatches) {
  EXPECT_THAT(collectives(planned("data-parallel", 4, 1)), testing::ElementsAre(testing::Pair("all-reduce", kParameters)));
  EXPECT_THAT(collectives(planned("data-parallel", 4, 2)), testing::ElementsAre(testing::Pair("all-reduce", kParameters)));
}

TEST(Zero1, ScattersGradientsOncePerStepAndGathersParameters) {
  EXPECT_THAT(collectives(planned("zero-1", 4, 2)),
              testing::ElementsAre(testing::Pair("all-gather", kParameters), testing::Pair("reduce-scatter", kParameters)));
}

TEST(Search, IsDeterministicAndBeatsOrEqualsEveryBaseline) {
  const Plan a = planned("auto", 4, 0), b = planned("auto", 4, 0);
  EXPECT_EQ(a, b);
  for (const std::string& method : method_names()) {
    if (method == "serial") continue;
    EXPECT_LE(a.prediction.step_s, planned(method, 4, 0).prediction.step_s) << method;
  }
}

TEST(Search, UsesAllDevicesEvenWhereOneWouldBeFaster) {
  Log log("test", LogLevel::off);
  Cluster cluster = small_cluster(4);
  cluster.within_node = {1, 1};  // a second per message
  const Plan plan = make_plan(small_model(), CostModel(cluster), {}, log);
  EXPECT_EQ(plan.devices(), 4);
}

TEST(Infeasible, NamesTheStageAndTheShortfall) {
  Log log("test", LogLevel::off);
  Cluster cluster = small_cluster(2);
  cluster.memory_bytes = 20000;
  EXPECT_THAT([&] { make_plan(small_model(), CostModel(cluster), {}, log); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("no plan fits: the stage of layers"), HasSubstr("short"))));
}

}  // namespace
}  // namespace alpa
