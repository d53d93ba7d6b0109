#include "libalpa/plan/explain.h"

#include <gmock/gmock.h>

#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

TEST(Explain, TellsStagesTimeMemoryAndLayoutsInWords) {
  const Lowered lowered = two_stages_of_two();
  const std::string text = explain(lowered.plan, lowered.graph);
  for (const char* part :
       {"tiny on 4 devices of 'test', 2 stages, 4 micro-batches of 2 samples, schedule 1f1b",
        "predicted step time", "(from a cluster file: extrapolated)",
        "what binds: ", "stage 0: layers 0 to 1 (embedding .. block.0) on 2 devices 0 to 1, mesh 2",
        "stage 1: layers 2 to 3 (block.1 .. head) on 2 devices 2 to 3, mesh 2", "time    compute ",
        "memory  ", "whole on every device", "split 2 ways along dimension 1 (axis 0)", "forward work",
        "candidates"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Explain, TellsHowFarFromTheLowerBoundAndWhatItCovers) {
  Lowered lowered = two_stages_of_two();
  Prediction& prediction = lowered.plan.prediction;
  EXPECT_LE(prediction.lower_bound_s, prediction.estimate_s);
  prediction.estimate_s = 1.5;
  prediction.lower_bound_s = 1.2;
  prediction.bound_covers = "these stages";
  prediction.hit_time_limit = true;
  const std::string text = explain(lowered.plan, lowered.graph);
  EXPECT_THAT(
      text, HasSubstr("estimate 1.50 s, lower bound 1.20 s: at most 25.00 % above the best of these stages"));
  EXPECT_THAT(text, HasSubstr("the time limit cut the search short"));
}

TEST(ComparePlans, FindsNothingBetweenAPlanAndItself) {
  const Plan plan = two_stages_of_two().plan;
  EXPECT_EQ(compare_plans(plan, plan), "");
}

TEST(ComparePlans, TellsEachDifferenceInALine) {
  const Plan plan = two_stages_of_two().plan;
  const auto difference = [&](const std::function<void(Plan&)>& change) {
    Plan other = plan;
    change(other);
    return compare_plans(plan, other);
  };
  EXPECT_EQ(difference([](Plan& p) { p.schedule = ScheduleKind::gpipe; }), "schedule: 1f1b | gpipe\n");
  EXPECT_EQ(difference([](Plan& p) { p.micro_batches = 2; }), "micro-batches: 4 | 2\n");
  EXPECT_EQ(difference([](Plan& p) { p.method = "by hand"; }), "method: " + plan.method + " | by hand\n");
  EXPECT_EQ(difference([](Plan& p) { p.stages[0].rematerialize = true; }),
            "stage 0: layers 0-1, mesh 2 from device 0 | layers 0-1, mesh 2 from device 0, rematerialised\n");
  EXPECT_THAT(difference([](Plan& p) { p.node_strategy[3] = {9}; }), HasSubstr("strategies of 1 of "));
  EXPECT_THAT(difference([](Plan& p) { p.value_layout[3].partial_sum ^= 1; }), HasSubstr("layouts of 1 of "));
  EXPECT_EQ(difference([](Plan& p) { p.crossings.pop_back(); }),
            "values cross between stages in another way\n");
  EXPECT_EQ(difference([](Plan& p) { p.prediction.estimated_operators += 1; }),
            "details of the prediction differ\n");
  EXPECT_THAT(difference([](Plan& p) { p.cluster.memory_bytes *= 2; }), HasSubstr("cluster: "));
}

}  // namespace
}  // namespace alpa
