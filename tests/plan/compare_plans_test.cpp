#include "libalpa/plan/compare_plans.h"

#include <gmock/gmock.h>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

TEST(ComparePlans, FindsNothingBetweenAPlanAndItself) {
  const Plan plan = two_stages_of_two().plan;
  EXPECT_EQ(compare_plans(plan, plan), "");
}

TEST(ComparePlans, PrintsEachDifferenceInALine) {
  const Plan plan = two_stages_of_two().plan;
  const auto difference = [&](const std::function<void(Plan&)>& change) {
    Plan other = plan;
    change(other);
    return compare_plans(plan, other);
  };
  EXPECT_EQ(difference([](Plan& p) { p.schedule = "gpipe"; }), "schedule: 1f1b | gpipe\n");
  EXPECT_EQ(difference([](Plan& p) { p.updates = UpdateOrder::before_norm; }),
            "updates: after-norm | before-norm\n");
  EXPECT_EQ(difference([](Plan& p) {
              p.sync = {{3_v, 0}, {5_v, 0}};
            }),
            "sums of gradients are added up in other buckets or parts, or in another order\n");
  EXPECT_EQ(difference([](Plan& p) {
              p.sync = {{3_v, -1, 0, {{16, 1}}}};
            }),
            "updates are shared out between devices, or servers, in another way\n");
  EXPECT_EQ(difference([](Plan& p) {
              p.sync = {{3_v, -1, 0, {}, 2}};
            }),
            "sums of gradients are added up in other buckets or parts, or in another order\n");
  EXPECT_EQ(difference([](Plan& p) { p.staleness = 2; }), "staleness: none | 2\n");
  EXPECT_EQ(difference([](Plan& p) { p.micro_batches = 2; }), "micro-batches: 4 | 2\n");
  EXPECT_EQ(difference([](Plan& p) { p.method = "by hand"; }), "method: " + plan.method + " | by hand\n");
  EXPECT_EQ(difference([](Plan& p) { p.stages[0_s].recomputed_layers = 2; }),
            "stage 0: layers 0-1, mesh 2 from device 0, recomputed layers: none | layers 0-1, mesh 2 from "
            "device 0, recomputed layers: full\n");
  EXPECT_THAT(difference([](Plan& p) {
                p.stages[0_s].recomputed_layers = 1;
                p.stages[0_s].recompute_form = RecomputeForm::selective;
              }),
              testing::HasSubstr("recomputed layers: selective, 1 of 2\n"));
  EXPECT_THAT(difference([](Plan& p) {
                p.stages[0_s].recomputed_layers = 1;
                p.stages[0_s].recompute_form = RecomputeForm::offload;
              }),
              testing::HasSubstr("layers with activations on the host: 1 of 2\n"));
  EXPECT_THAT(difference([](Plan& p) { p.node_strategy[3_n] = {9}; }), HasSubstr("strategies of 1 of "));
  EXPECT_THAT(difference([](Plan& p) { p.value_layout[3_v].partial_sum ^= 1; }),
              HasSubstr("layouts of 1 of "));
  EXPECT_EQ(difference([](Plan& p) { p.transfers.pop_back(); }),
            "values cross between meshes in another way\n");
  EXPECT_EQ(difference([](Plan& p) { p.prediction.estimated_operators += 1; }),
            "details of the prediction differ\n");
  EXPECT_THAT(difference([](Plan& p) { p.cluster.memory_bytes *= 2; }), HasSubstr("cluster: "));
}

TEST(ComparePlans, DistinguishesSettingsOfTheTraining) {
  Plan plan = two_stages_of_two().plan;
  plan.model_toml = "name = \"tiny\"\n\n[training]\nlearning_rate = 0.001\nsteps = 20\n";
  Plan other = plan;
  other.model_toml = "name = \"tiny\"\n\n[training]\nlearning_rate = 0.002\nsteps = 30\n";
  EXPECT_EQ(compare_plans(plan, other),
            "training: learning_rate = 0.001 | learning_rate = 0.002\ntraining: steps = 20 | steps = 30\n");
  other.model_toml = plan.model_toml + "# the same, with a remark\n";
  EXPECT_EQ(compare_plans(plan, other),
            "the model's TOML differs, but neither its graph nor its [training]\n");
}

}  // namespace
}  // namespace alpa
