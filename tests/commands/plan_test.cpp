#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PlanCommands : public Workplace {
 protected:
  /// Measures the tiny GPT on two ranks, as briefly as can be.
  void profile(const std::string& name) const {
    const CommandResult result =
        run("alpa-profile " + tiny_gpt_ + " --out " + name +
                " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --time-budget 10",
            2);
    ASSERT_EQ(result.status, 0) << result.output;
  }
  std::string output_of(const std::string& command) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  /// "predicted step time 1.23 ms (from ...)": 1.23 ms
  std::string predicted(const std::string& plan) const {
    const std::string text = output_of("alpa-plan explain " + plan), label = "predicted step time ";
    const std::size_t begin = text.find(label) + label.size();
    return text.substr(begin, text.find(" (", begin) - begin);
  }
};

TEST_F(PlanCommands, SimulateAgreesWithThePredictionAndSaysWhenItsCostsAreOthers) {
  profile("profile.h5");
  profile("other.h5");
  output_of("alpa-plan " + tiny_gpt_ + " --profile profile.h5 --method data-parallel --out plan.h5");
  const std::string step = predicted("plan.h5");
  // Where the machines were busy a warning comes first.
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5 --profile profile.h5"), HasSubstr("step " + step + "\n"));
  const std::string own = "; " + step + " with the profile that the plan was made from (";
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5"),
              AllOf(StartsWith("step "), HasSubstr(" with costs estimated from the numbers of cluster '"),
                    HasSubstr(own)));
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5 --profile other.h5"),
              AllOf(HasSubstr("step "), HasSubstr(" with the costs of 'other.h5' ("), HasSubstr(own)));
  EXPECT_THAT(output_of("alpa-plan what-if plan.h5 --profile profile.h5 --memory x2"),
              AllOf(HasSubstr("\nmeasured costs are extrapolated: "),
                    HasSubstr("\nstep        " + step + " -> " + step + " (+0.0 %)\n")));
  EXPECT_THAT(output_of("alpa-plan explain plan.h5 --profile profile.h5 --why-not plan.h5"),
              HasSubstr("plan.h5 takes as long: " + step + " a step\n"));
}

TEST_F(PlanCommands, SimulateOfAPlanFromAClusterFileIsItsPrediction) {
  make_plan("plan", "--method data-parallel");
  const std::string step = predicted("plan.h5");
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5"), StartsWith("step " + step + "\n"));
  EXPECT_THAT(output_of("alpa-plan simulate plan.h5 --program"),
              AllOf(StartsWith("1 micro-batches of "), HasSubstr("\nmesh 4 from device 0, arena of "),
                    HasSubstr("\n  schedule F0 B0 U\n"), HasSubstr("\nstep " + step + "\n")));
}

// Bounds are of steps whose communication takes turns with computation.
TEST_F(PlanCommands, BoundPlansThatOverlapByTheirComputationAlone) {
  make_plan("plan", "--devices 2");
  EXPECT_THAT(output_of("alpa-plan explain plan.h5"),
              AllOf(HasSubstr("above the best of"), Not(HasSubstr("overlap"))));
  make_plan("beside", "--devices 2 --overlap all");
  EXPECT_THAT(output_of("alpa-plan explain beside.h5 --full"),
              AllOf(HasSubstr(", overlap all, "), HasSubstr("whatever its schedule, its overlap")));
}

TEST_F(PlanCommands, RecordTheOptionsInEffectInThePlan) {
  make_plan("plan", "--method zero-2 --devices 2 --rematerialize never");
  EXPECT_THAT(
      H5Reader(path("plan.h5"), kPlanFormat, kPlanVersion).text_attribute("/provenance", "settings"),
      StartsWith(
          "{devices = 2, servers = 0, staleness = -1, micro_batches = 0, method = \"zero-2\", preset = "
          "\"none\", schedule = \"auto\", "
          "overlap = \"none\", transfers = \"auto\", updates = \"after-norm\", "
          "sync = \"auto\", sync_order = \"auto\", owners = \"none\", owner_parts = 0, offload = \"none\", "
          "rematerialize = \"never\", effort = "
          "\"normal\", mesh_axes = 0, "
          "time_limit = 240.0, "));
}

TEST_F(PlanCommands, WarnOfUpdatesThatCannotComeInTheNextForward) {
  const std::string plan =
      "alpa-plan " + tiny_gpt_ +
      " --cluster " ALPA_SOURCE_DIR
      "/configs/clusters/local-2.toml --updates next-forward --force --out plan.h5 --method ";
  EXPECT_THAT(output_of(plan + "inter-only"),
              AllOf(HasSubstr("stages share weights"), Not(HasSubstr("updates next-forward"))));
  EXPECT_THAT(output_of(plan + "data-parallel"),
              AllOf(Not(HasSubstr("stages share weights")), HasSubstr(", updates next-forward, ")));
}

TEST_F(PlanCommands, WarnOfAPlanThatGpusHaveNoKernelsFor) {
  const std::string lstm = ALPA_SOURCE_DIR "/tests/data/tiny_lstm.toml", warning = "no kernels for GPUs yet";
  const auto planned = [&](const std::string& model, const std::string& cluster) {
    return output_of("alpa-plan " + model + " --cluster " ALPA_SOURCE_DIR "/configs/clusters/" + cluster +
                     ".toml --devices 1 --method serial --time-limit 1 --out plan.h5 --force");
  };
  EXPECT_THAT(planned(lstm, "h200-1"),
              HasSubstr(warning + " of lstm, lstm_grad, step_weights: this plan for NVIDIA H200"));
  EXPECT_THAT(planned(lstm, "local-2"), Not(HasSubstr(warning)));
  const std::string powersgd = ALPA_SOURCE_DIR "/tests/data/tiny_powersgd.toml";
  for (const std::string& model : {tiny_gpt_, powersgd})
    EXPECT_THAT(planned(model, "h200-1"), Not(HasSubstr(warning)));
}

TEST_F(PlanCommands, SayWhatConstraintsCostAndKeepThemInThePlan) {
  std::ofstream(path("limits.toml")) << "most_zero = 0\n[[boundary]]\nafter = \"block.0\"\n";
  make_plan("here", "--constraints limits.toml --effort quick --micro-batches 4");
  EXPECT_THAT(output_of("alpa-plan explain here.h5"),
              AllOf(HasSubstr("\nconstraints that the plan meets: "), HasSubstr("ZeRO at most 0 "),
                    HasSubstr(" limits.toml:2 "), HasSubstr("  all of them ")));
  std::filesystem::create_directory(path("there"));
  std::filesystem::rename(path("limits.toml"), path("there/limits.toml"));
  make_plan("there", "--constraints there/limits.toml --effort quick --micro-batches 4");
  EXPECT_EQ(difference(path("here.h5"), path("there.h5")), "");
}

TEST_F(PlanCommands, GiveTheSamePlanForAPinInAnotherFolder) {
  make_mixed_plan("in_a_second");
  make_plan("here", "--pin mixed.toml");
  std::filesystem::create_directory(path("there"));
  std::filesystem::rename(path("mixed.toml"), path("there/mixed.toml"));
  make_plan("there", "--pin there/mixed.toml");
  EXPECT_EQ(difference(path("here.h5"), path("there.h5")), "");
}

}  // namespace
}  // namespace alpa
