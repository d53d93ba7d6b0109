#include "libalpa/plan/facts/facts_difference.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

PlanFacts facts_of(const Lowered& lowered) { return plan_facts(lowered.plan, lowered.graph); }

TEST(FactsDifference, OfAPlanAndItselfIsThatAllIsTheSame) {
  const PlanFacts facts = facts_of(two_stages_of_two());
  const FactsDifference difference = facts_difference(facts, facts);
  EXPECT_TRUE(difference.layouts.empty());
  EXPECT_GT(difference.same_layouts, 0);
  for (const FactsDifference::Figure& each : difference.figures)
    EXPECT_EQ(each.first, each.second) << each.name;
  EXPECT_THAT(difference_text(difference, "a.h5", "b.h5"), HasSubstr("parameters laid out differently: 0"));
}

TEST(FactsDifference, HasTheFiguresOfBothAndByHowMuchTheyDiffer) {
  const PlanFacts first = facts_of(two_stages_of_two());
  PlanFacts second = first;
  second.prediction.step_s = 1.5 * first.prediction.step_s;
  second.schedule = "gpipe";
  const FactsDifference difference = facts_difference(first, second);
  EXPECT_THAT(difference_text(difference, "a.h5", "b.h5"),
              testing::AllOf(testing::ContainsRegex("step +[0-9.]+ .s +[0-9.]+ .s +\\+50.0 %"),
                             testing::ContainsRegex("schedule +1f1b +gpipe")));
  const nlohmann::json json = nlohmann::json::parse(difference_json(difference).text());
  EXPECT_EQ(json["figures"][0]["figure"], "step_s");
  EXPECT_EQ(json["figures"][0]["unit"], "s");
  EXPECT_EQ(json["figures"][0]["second"], second.prediction.step_s);
  const std::string csv = difference_csv(difference);
  EXPECT_THAT(csv, testing::StartsWith("figure,unit,first,second\nstep_s,s,"));
  EXPECT_THAT(csv, HasSubstr("\nschedule,,1f1b,gpipe\n"));
  for (const nlohmann::json& figure : json["figures"])
    EXPECT_THAT(csv, HasSubstr("\n" + figure["figure"].get<std::string>() + ","));
}

TEST(FactsDifference, NamesParametersThatLieOtherwise) {
  const PlanFacts first = facts_of(two_stages_of_two());
  PlanFacts second = first;
  ASSERT_FALSE(second.stages[0].tensors.parameters.empty());
  ParameterGroup& moved = second.stages[0].tensors.parameters[0];
  moved.layout = "split 2 ways along dimension 1 (axis 0)";
  second.stages[1].tensors.parameters.push_back({"another", "f32[4]", "R", "whole on every device", 1});
  const FactsDifference difference = facts_difference(first, second);
  ASSERT_EQ(difference.layouts.size(), 2u);
  EXPECT_EQ(difference.layouts[0].parameter, moved.name);
  EXPECT_THAT(difference.layouts[0].second, HasSubstr(moved.layout));
  EXPECT_EQ(difference.layouts[1].first, "");
  EXPECT_THAT(difference_text(difference, "a.h5", "b.h5"),
              testing::ContainsRegex("another +f32.4. +not there +whole on every device"));
}

}  // namespace
}  // namespace alpa
