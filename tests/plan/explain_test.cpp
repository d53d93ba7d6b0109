#include "libalpa/plan/explain.h"

#include <gmock/gmock.h>

#include "libalpa/base/units.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::Not;

TEST(Explain, PrintsStagesTimeMemoryAndLayoutsInWords) {
  const Lowered lowered = two_stages_of_two();
  const std::string text = explain(lowered.plan, lowered.graph);
  for (const char* part :
       {"tiny on 4 devices of 'test', 2 stages, 4 micro-batches of 2 samples, schedule 1f1b",
        "predicted step time", "(no profile: every cost is estimated from the numbers of cluster 'test')",
        "what binds: ", "stage 0: layers 0 to 1 (embedding .. block.0) on 2 devices 0 to 1, mesh 2",
        "stage 1: layers 2 to 3 (block.1 .. head) on 2 devices 2 to 3, mesh 2", "time    compute ",
        "memory  ", "whole on every device", "split 2 ways along dimension 1 (axis 0)", "forward work",
        "candidates"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Explain, SaysWhatOfAGpuNoPlanGets) {
  Lowered lowered = two_stages_of_two();
  const char* kept = "  memory  ";
  EXPECT_THAT(explain(lowered.plan, lowered.graph), Not(HasSubstr("kept for CUDA")));
  lowered.plan.cluster.kind = DeviceKind::cuda;
  EXPECT_THAT(explain(lowered.plan, lowered.graph),
              testing::ContainsRegex(std::string(kept) + "[^\n]*\n" +
                                     "          beside it 2.00 GiB of each GPU are kept for CUDA"));
}

/// The tiny GPT on one stage of two devices, by the batch.
Lowered data_parallel(const std::string& state_sharding) {
  return pinned(
      "micro_batches = 4\n[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\nstate_sharding = \"" +
      state_sharding + "\"\n");
}

TEST(Explain, PrintsTrainingStateThatLiesOtherwiseThanItsParameter) {
  const Lowered zero_1 = data_parallel("optimizer");
  EXPECT_THAT(explain(zero_1.plan, zero_1.graph),
              HasSubstr("  optimizer state that lies otherwise than its parameter\n"
                        "     72 x split 2 ways along dimension 0 (axis 0): block.*.down.bias.moment1, "));
  const Lowered whole = data_parallel("none");
  EXPECT_THAT(explain(whole.plan, whole.graph), Not(HasSubstr("optimizer state that lies otherwise")));
}

TEST(Explain, PrintsSumsOfGradientsThatWaitForTheirReduction) {
  const Lowered lowered = data_parallel("none");
  EXPECT_THAT(explain(lowered.plan, lowered.graph),
              HasSubstr("  sums of gradients that lie otherwise than their parameter\n"
                        "     36 x a sum still to be reduced over 2 devices (axis 0): block.*.down, "));
}

TEST(Explain, PrintsSavedActivationsThatAreSplit) {
  const Lowered lowered = data_parallel("none");
  EXPECT_THAT(explain(lowered.plan, lowered.graph),
              testing::ContainsRegex("activations, saved for the backward, that are split\n"
                                     " +[0-9]+ x split 2 ways along dimension 0 \\(axis 0\\): add, "));
}

TEST(Explain, PrintsHowManyMicroBatchesAreInFlight) {
  const Lowered lowered = two_stages_of_two();
  ASSERT_EQ(lowered.plan.prediction.meshes[0_m].in_flight, 2);
  const std::int64_t bytes = lowered.plan.prediction.meshes[0_m].memory.activations;
  EXPECT_THAT(explain(lowered.plan, lowered.graph),
              HasSubstr("activations 2 x " + bytes_text(static_cast<double>(bytes) / 2) + " in flight"));
}

TEST(Explain, SaysThatMemoryBindsWhereItIsNearlyFullAloneAndWhatIsRecomputed) {
  Lowered lowered = two_stages_of_two();
  EXPECT_THAT(explain(lowered.plan, lowered.graph), Not(HasSubstr("memory on stage")));
  lowered.plan.stages[0_s].recomputed_layers = 2;
  EXPECT_THAT(explain(lowered.plan, lowered.graph),
              HasSubstr("; recomputation on stage 0 (memory 0 % full)\n"));
  lowered.plan.prediction.meshes[1_m].memory.total = lowered.plan.cluster.memory_bytes * 95 / 100;
  EXPECT_THAT(explain(lowered.plan, lowered.graph), HasSubstr("; memory on stage 1 (95 % full)"));
}

TEST(WhySlower, NamesTheLargestDifference) {
  const Candidate chosen{"a", 0.010, 0, "", {0.006, 0.002, 0.001, 0.001}};
  EXPECT_EQ(why_slower({"b", 0.013, 0, "", {0.007, 0.0045, 0.001, 0.0005}}, chosen),
            "slower: collectives +2.50 ms");
  EXPECT_EQ(why_slower({"c", 0.012, 0, "", {0.005, 0.001, 0.001, 0.005}}, chosen), "slower: idle +4.00 ms");
  EXPECT_EQ(why_slower(chosen, chosen), "as fast");
}

TEST(Explain, PrintsHowFarFromTheLowerBoundAndWhatItCovers) {
  Lowered lowered = two_stages_of_two();
  Prediction& prediction = lowered.plan.prediction;
  EXPECT_LE(prediction.lower_bound_s, prediction.estimate_s);
  prediction.step_s = 1.4;
  prediction.estimate_s = 1.5;
  prediction.lower_bound_s = 1.2;
  prediction.bound_covers = "these stages";
  prediction.hit_time_limit = true;
  const std::string text = explain(lowered.plan, lowered.graph);
  EXPECT_THAT(text, HasSubstr("estimate 1.50 s, lower bound on such estimates 1.20 s: at most 25.00 % above "
                              "the best of these stages\n"));
  EXPECT_THAT(text, HasSubstr("the search was cut short"));
}

TEST(Explain, SaysWhyABoundIsAboveThePredictedStep) {
  Lowered lowered = two_stages_of_two();
  Prediction& prediction = lowered.plan.prediction;
  prediction.step_s = 1.1;
  prediction.estimate_s = 1.5;
  prediction.lower_bound_s = 1.2;
  prediction.bound_covers = "these stages";
  EXPECT_THAT(
      explain(lowered.plan, lowered.graph),
      HasSubstr("above the best of these stages; the predicted step, simulated in more detail, is below "
                "both\n"));
}

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
  EXPECT_EQ(difference([](Plan& p) { p.micro_batches = 2; }), "micro-batches: 4 | 2\n");
  EXPECT_EQ(difference([](Plan& p) { p.method = "by hand"; }), "method: " + plan.method + " | by hand\n");
  EXPECT_EQ(difference([](Plan& p) { p.stages[0_s].recomputed_layers = 2; }),
            "stage 0: layers 0-1, mesh 2 from device 0 | layers 0-1, mesh 2 from device 0, "
            "recomputes its forward in the backward\n");
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
