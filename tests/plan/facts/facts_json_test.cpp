#include "libalpa/plan/facts/facts_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

nlohmann::json json_of(const Lowered& lowered) {
  return nlohmann::json::parse(facts_json(plan_facts(lowered.plan, lowered.graph)).text());
}

TEST(FactsJson, HasTheFiguresOfThePrediction) {
  const Lowered lowered = two_stages_of_two();
  const nlohmann::json facts = json_of(lowered);
  const Prediction& prediction = lowered.plan.prediction;
  EXPECT_EQ(facts["step_s"], prediction.step_s);
  EXPECT_TRUE(facts["step_error_s"].is_null());  // of a cluster's numbers
  EXPECT_EQ(facts["split"], "PP2");
  EXPECT_EQ(facts["costs"], "estimated");
  ASSERT_EQ(facts["stages"].size(), 2u);
  for (int s = 0; s < 2; ++s) {
    const nlohmann::json& stage = facts["stages"][s];
    const MeshPrediction& figures = prediction.meshes[MeshIndex(s)];
    EXPECT_EQ(stage["time"]["compute_s"], figures.compute_s);
    EXPECT_EQ(stage["memory"]["total_bytes"], figures.memory.total);
    EXPECT_EQ(stage["devices"], 2);
  }
  EXPECT_EQ(facts["stages"][0]["split"], "DP2");
  EXPECT_EQ(facts["candidates"].size(), prediction.candidates.size());
}

TEST(FactsJson, HasConstraintsAndTheirPrices) {
  Lowered lowered = two_stages_of_two();
  EXPECT_EQ(json_of(lowered)["constraints"].size(), 0u);
  EXPECT_TRUE(json_of(lowered)["unconstrained_step_s"].is_null());
  lowered.plan.prediction.constraints = {{"ZeRO at most 1", "limits.toml:1", 0.25},
                                         {"1 stage", "limits.toml:2", 0}};
  lowered.plan.prediction.unconstrained_s = 0.125;
  const nlohmann::json facts = json_of(lowered);
  EXPECT_EQ(facts["unconstrained_step_s"], 0.125);
  EXPECT_EQ(facts["constraints"][0],
            (nlohmann::json{
                {"constraint", "ZeRO at most 1"}, {"where", "limits.toml:1"}, {"step_without_s", 0.25}}));
  EXPECT_TRUE(facts["constraints"][1]["step_without_s"].is_null());
}

TEST(FactsJson, PartsOfTheStepAddUpToIt) {
  const nlohmann::json facts = json_of(two_stages_of_two());
  const nlohmann::json& time = facts["time"];
  const double sum = time["compute_s"].get<double>() + time["collectives_s"].get<double>() +
                     time["transfers_s"].get<double>() + time["idle_s"].get<double>();
  EXPECT_NEAR(sum, facts["step_s"].get<double>(), 1e-12);  // sums of doubles in another order
}

TEST(FactsJson, CountsEachParameterOnce) {
  const Lowered lowered = two_stages_of_two();
  int listed = 0, parameters = 0;
  const nlohmann::json facts = json_of(lowered);
  for (const nlohmann::json& stage : facts["stages"])
    for (const nlohmann::json& group : stage["parameters"]) listed += group["count"].get<int>();
  for (const State& state : lowered.graph.states) parameters += state.is_parameter;
  EXPECT_EQ(listed, parameters);
}

TEST(FactsJson, HasNullWhereNothingIsKnown) {
  Lowered lowered = two_stages_of_two();
  lowered.plan.prediction.lower_bound_s = 0;
  lowered.plan.prediction.candidates = {{"serial", 0, 0, "does not fit", {}}};
  const nlohmann::json facts = json_of(lowered);
  EXPECT_TRUE(facts["bound"]["lower_bound_s"].is_null());
  EXPECT_TRUE(facts["runner_up"].is_null());
  EXPECT_TRUE(facts["candidates"][0]["step_s"].is_null());
}

}  // namespace
}  // namespace alpa
