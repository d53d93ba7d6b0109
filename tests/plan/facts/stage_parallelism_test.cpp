#include "libalpa/plan/facts/stage_parallelism.h"

#include <gmock/gmock.h>

#include "libalpa/plan/facts/plan_facts.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// What is said of the tiny GPT on one stage of this mesh, pinned to these roles.
std::string split_of(const std::string& mesh, const std::string& axes,
                     const std::string& state_sharding = "none") {
  const Lowered lowered = pinned("micro_batches = 4\n[[stage]]\nlayers = 4\nmesh = " + mesh +
                                 "\naxes = " + axes + "\nstate_sharding = \"" + state_sharding + "\"\n");
  return plan_facts(lowered.plan, lowered.graph).stages.front().split.text();
}

TEST(StageParallelism, IsReadOffTheStrategies) {
  EXPECT_EQ(split_of("[1]", "[]"), "1 device");
  EXPECT_EQ(split_of("[2]", R"(["data"])"), "DP2");
  EXPECT_THAT(split_of("[2]", R"(["tensor"])"), testing::StartsWith("TP2"));
  EXPECT_EQ(split_of("[2, 2]", R"(["data", "sequence"])"), "DP2 · SP2");
  EXPECT_EQ(split_of("[4]", R"(["sequence"])"), "SP4");
  EXPECT_EQ(split_of("[4]", R"(["ring"])"), "CP4");
}

TEST(StageParallelism, CountsWhatOfTheStatesIsSplitOverTheDataAxes) {
  EXPECT_EQ(split_of("[2]", R"(["data"])", "optimizer"), "DP2 · ZeRO-1");
  EXPECT_EQ(split_of("[2]", R"(["data"])", "gradients"), "DP2 · ZeRO-2");
  EXPECT_EQ(split_of("[2]", R"(["data"])", "parameters"), "DP2 · ZeRO-3");
  EXPECT_EQ(split_of("[2, 2]", R"(["data", "sequence"])", "optimizer"), "DP2 · SP2 · ZeRO-1");
}

TEST(StageParallelism, SaysWhatAnAxisDoesInTurn) {
  const StageParallelism mixed{{{4, {{Parallelism::data, 0.7}, {Parallelism::tensor, 0.3}}}}, 1, 0.6};
  EXPECT_EQ(mixed.text(), "DP4|TP4 (70|30 %) · ZeRO-1 (60 %)");
  const StageParallelism copies{{{2, {{Parallelism::none, 1.0}}}, {3, {{Parallelism::none, 1.0}}}}};
  EXPECT_EQ(copies.text(), "copies6");
  StageParallelism megatron{{{4, {{Parallelism::tensor, 1.0}}}}};
  megatron.axes[0].splits_sequence_between = true;
  EXPECT_EQ(megatron.text(), "TP4 · SP");
  // Experts live on the devices that share out the data.
  const StageParallelism experts{{{8, {{Parallelism::data, 0.6}, {Parallelism::expert, 0.4}}}}};
  EXPECT_EQ(experts.text(), "DP8 · EP8");
}

}  // namespace
}  // namespace alpa
