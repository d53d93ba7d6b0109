#include "libalpa/report/simulated_step.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "libalpa/plan/facts/stage_columns.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::StartsWith;

/// [line][cell], where no cell has a comma.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(csv);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string>& cells = lines.emplace_back();
    std::istringstream of_line(line);
    for (std::string cell; std::getline(of_line, cell, ',');) cells.push_back(cell);
  }
  return lines;
}

class SimulatedStepOfTwoMeshes : public testing::Test {
 protected:
  const Lowered lowered_ = two_stages_of_two();
  const CostModel costs_{small_cluster(4)};
  const Timeline timeline_ = simulate(lowered_.program, costs_);
  const SimulatedStep step_ = simulated_step(lowered_.plan, lowered_.program, timeline_, costs_, 0);
};

TEST_F(SimulatedStepOfTwoMeshes, IsALineForEachMeshInWords) {
  const std::string text = simulation_text(step_, " with remark");
  EXPECT_THAT(text, StartsWith("step "));
  EXPECT_THAT(text, HasSubstr(" with remark\nstage 0: compute "));
  EXPECT_THAT(text, HasSubstr("\nstage 1: compute "));
}

TEST_F(SimulatedStepOfTwoMeshes, HasTheSameNamesAndNumbersInCsvAsInJson) {
  const nlohmann::json json = nlohmann::json::parse(simulation_json(step_).text());
  EXPECT_EQ(json["step_s"], timeline_.step_s);
  EXPECT_TRUE(json["step_error_s"].is_null());
  const auto lines = cells_of(simulation_csv(step_));
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t m = 0; m < 2; ++m)
    for (const char* group : {"time", "memory"})
      for (const auto& [name, value] : json["meshes"][m][group].items()) {
        const auto column = std::ranges::find(lines[0], name);
        ASSERT_NE(column, lines[0].end()) << name;
        EXPECT_EQ(std::stod(lines[m + 1][column - lines[0].begin()]), value.get<double>()) << name;
      }
}

TEST_F(SimulatedStepOfTwoMeshes, HasTheColumnsOfThePlansStages) {
  const auto simulated = cells_of(simulation_csv(step_)),
             planned = cells_of(stages_csv(plan_facts(lowered_.plan, lowered_.graph)));
  ASSERT_EQ(planned.size(), 3u);
  for (const std::string& name : simulated[0])
    if (name != "stages" && name != "step_s") {
      EXPECT_THAT(planned[0], testing::Contains(name));
    }
}

}  // namespace
}  // namespace alpa
