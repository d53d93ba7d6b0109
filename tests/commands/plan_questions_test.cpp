// What is asked of a plan that is there: what-if, --why-not.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class PlanQuestions : public Workplace {
 protected:
  std::string output_of(const std::string& command) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  nlohmann::json json_of(const std::string& command) const {
    return nlohmann::json::parse(output_of(command));
  }
  /// Ends with that status after one message that begins so.
  void expect_refused(const std::string& command, int status, const std::string& message) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.status, status) << command << "\n" << result.output;
    EXPECT_THAT(result.output, StartsWith("alpa-plan: error: " + message)) << command;
  }
};

TEST_F(PlanQuestions, WhatIfShowsTheStandardChangesBesideThePlanAsItIs) {
  make_mixed_plan("plan");
  const nlohmann::json asked = json_of("alpa-plan what-if plan.h5 --json");
  const nlohmann::json facts = json_of("alpa-plan explain plan.h5 --json");
  EXPECT_EQ(asked["steps"].size(), 6u);
  EXPECT_EQ(asked["steps"][0]["with"], "as it is");
  EXPECT_EQ(asked["steps"][0]["step_s"], facts["step_s"]);
  EXPECT_EQ(asked["steps"][4]["with"], "memory x2");
  EXPECT_EQ(asked["steps"][4]["step_s"], facts["step_s"]);
  const std::string text = output_of("alpa-plan what-if plan.h5");
  EXPECT_THAT(text, AllOf(StartsWith("tiny_gpt on 4 devices of 'local-4': PP2, "),
                          HasSubstr("\nbetween nodes x0.5  "), HasSubstr("\nThe plan is kept as it is: ")));
}

TEST_F(PlanQuestions, WhatIfHalvesAllComputation) {
  make_plan("plan", "--method serial");
  const nlohmann::json steps = json_of("alpa-plan what-if plan.h5 --compute x2 --json")["steps"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]["step_s"].get<double>(), steps[0]["step_s"].get<double>() / 2);
  EXPECT_THAT(output_of("alpa-plan what-if plan.h5 --compute 2 --memory x0.000001"),
              AllOf(HasSubstr("\nwith        memory x1e-06, compute x2\n"), HasSubstr("(-50.0 %)"),
                    HasSubstr(" too little: does not fit\n")));
}

TEST_F(PlanQuestions, WhatIfRefusesWhatCannotBe) {
  make_plan("plan", "--method serial");
  for (const char* factor : {"x0", "x-1", "2x", "xinf", "nan", "x1e9", "''"})
    expect_refused("alpa-plan what-if plan.h5 --memory " + std::string(factor), 2, "--memory: expected a ");
  expect_refused("alpa-plan what-if plan.h5 --device V1000", 2, "device 'V1000' is not known");
  expect_refused("alpa-plan what-if missing.h5", 3, "cannot read 'missing.h5'");
  expect_refused("alpa-plan what-if plan.h5 --profile plan.h5", 3, "");
  write("words.h5", "no plan");
  expect_refused("alpa-plan what-if words.h5", 3, "'words.h5' is not an HDF5 file");
}

TEST_F(PlanQuestions, HaveTheSameNamesInEveryAnswerForOtherPrograms) {
  make_mixed_plan("plan");
  make_plan("serial", "--method serial");
  const nlohmann::json facts = json_of("alpa-plan explain plan.h5 --json"),
                       simulated = json_of("alpa-plan simulate plan.h5 --json");
  EXPECT_EQ(simulated["step_s"], facts["step_s"]);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(simulated["meshes"][s]["time"], facts["stages"][s]["time"]);
  EXPECT_THAT(output_of("alpa-plan explain plan.h5 --csv"),
              AllOf(StartsWith("stage,first_layer,"), HasSubstr(",compute_s,collectives_s,"),
                    HasSubstr("\n0,0,"), HasSubstr("\n1,")));
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5 --csv"),
              AllOf(StartsWith("stages,compute_s,collectives_s,"), HasSubstr("\n0,"), HasSubstr("\n1,")));
  const CommandResult compared = run("alpa-plan compare plan.h5 serial.h5 --csv");
  EXPECT_EQ(compared.status, 1) << compared.output;
  EXPECT_THAT(compared.output,
              AllOf(StartsWith("figure,unit,first,second\nstep_s,s,"), HasSubstr("\ncompute_s,s,"),
                    HasSubstr("\ntotal_bytes,B,"), HasSubstr("\ndevices,,4,1\n"), HasSubstr("\nlayout of ")));
  expect_refused("alpa-plan simulate plan.h5 --csv --json", 2, "--json together with --csv");
  expect_refused("alpa-plan explain plan.h5 --why-not serial.h5 --csv", 2, "--csv together with --why-not");
}

double sum_of(const nlohmann::json& items, const std::string& member) {
  double sum = 0;
  for (const nlohmann::json& item : items) sum += item[member].get<double>();
  return sum;
}

TEST_F(PlanQuestions, WhyNotSaysInWordsAndTermByTermWhatAnotherPlanTakesLongerWith) {
  make_mixed_plan("plan");
  make_plan("zero", "--method zero-2");
  const nlohmann::json why = json_of("alpa-plan explain plan.h5 --why-not zero.h5 --json");
  const double own_s = json_of("alpa-plan explain plan.h5 --json")["step_s"],
               other_s = json_of("alpa-plan explain zero.h5 --json")["step_s"];
  EXPECT_EQ(why["plan"]["step_s"], own_s);
  EXPECT_EQ(why["other"]["step_s"], other_s);
  EXPECT_NEAR(sum_of(why["differences"], "more_s"), other_s - own_s, 1e-9 * own_s);  // rounding of sums
  EXPECT_EQ(why["other"]["memory"]["total_bytes"],
            json_of("alpa-plan explain zero.h5 --json")["stages"][0]["memory"]["total_bytes"]);
  EXPECT_THAT(output_of("alpa-plan explain plan.h5 --why-not zero.h5"),
              AllOf(StartsWith("zero.h5 is slower: "), HasSubstr(", the most by synchronisation (+"),
                    HasSubstr("\nplan.h5: PP2, 4 micro-batches\n"), HasSubstr("\nzero.h5: DP4 · ZeRO-2, ")));
  EXPECT_THAT(output_of("alpa-plan explain zero.h5 --why-not plan.h5"), StartsWith("plan.h5 is faster: "));
  EXPECT_THAT(output_of("alpa-plan explain zero.h5 --why-not zero.h5"),
              StartsWith("zero.h5 takes as long: "));
}

TEST_F(PlanQuestions, WhyNotPricesAPlanOfAnotherClusterOnThisOne) {
  make_plan("plan", "--method zero-2");
  const CommandResult made =
      run("alpa-plan " + tiny_gpt_ +
          " --cluster " ALPA_SOURCE_DIR "/configs/clusters/local-2.toml --method zero-2 --out two.h5");
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(
      output_of("alpa-plan explain plan.h5 --why-not two.h5"),
      HasSubstr("\n'two.h5' was made for cluster 'local-2': it is priced as it would run on 'local-4'\n"));
  expect_refused("alpa-plan explain two.h5 --why-not plan.h5", 3,
                 "'plan.h5' takes 4 devices, cluster 'local-2' has 2");
}

TEST_F(PlanQuestions, WhyNotRefusesPlansOfDifferentModelsAndWhatItCannotUse) {
  make_plan("plan", "--method serial");
  make_plan("lstm", "--method serial", ALPA_SOURCE_DIR "/tests/data/tiny_lstm.toml");
  expect_refused("alpa-plan explain plan.h5 --why-not lstm.h5", 3,
                 "'plan.h5' and 'lstm.h5' are plans of different models: 'tiny_gpt' and 'tiny_lstm'");
  expect_refused("alpa-plan explain plan.h5 --why-not missing.h5", 3, "cannot read 'missing.h5'");
  expect_refused("alpa-plan explain plan.h5 --why-not lstm.h5 --full", 2, "--full together with --why-not");
  expect_refused("alpa-plan explain plan.h5 --profile lstm.h5", 2, "--profile without --why-not");
}

TEST_F(PlanQuestions, RunnersUpAreATableOfTheWaysThatGradientsDoNotGo) {
  make_plan("plan", "--method data-parallel");
  const std::string table = output_of("alpa-plan explain plan.h5 --runners-up");
  EXPECT_THAT(table, AllOf(StartsWith("step "), HasSubstr("runner-up"), HasSubstr("block.*.mlp.up ")));
  EXPECT_EQ(output_of("alpa-plan explain plan.h5 --runners-up"), table);
  make_plan("serial", "--method serial");
  EXPECT_EQ(
      output_of("alpa-plan explain serial.h5 --runners-up"),
      "there is no gradient that could be synchronised in another way (those of tied weights, and ones that "
      "are compressed or delayed, go as planned)\n");
  expect_refused("alpa-plan explain plan.h5 --runners-up --full", 2, "--runners-up together with --full");
}

}  // namespace
}  // namespace alpa
