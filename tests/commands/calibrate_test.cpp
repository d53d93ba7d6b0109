// A profile is corrected by what a run took, and predictions are made with it.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "libalpa/cluster/cost_kind.h"
#include "libalpa/cluster/profile_file.h"
#include "libalpa/plan/plan_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

class CalibrateCommand : public Workplace {
 protected:
  static constexpr const char* kModel = ALPA_SOURCE_DIR "/tests/data/tiny_mlp.toml";

  void SetUp() override {
    expect_done(
        run(std::string("alpa-profile ") + kModel +
                " --micro-batch-samples 4 --repetitions 3 --least-sample-ms 0.1 --cold-mib 1 --threads 1 "
                "--out profile.h5",
            2));
    expect_done(run(std::string("alpa-plan ") + kModel +
                    " --profile profile.h5 --method data-parallel --micro-batches 2 --out plan.h5"));
  }

  CommandResult train_plan(const std::string& options) const {
    return run("alpa-train plan.h5 --data synthetic:32 --threads 1 --run-dir run " + options, 2);
  }
  CommandResult calibrate(const std::string& profile = "profile.h5") const {
    return run("alpa-plan calibrate run --profile " + profile + " --out calibrated.h5");
  }

  static void expect_done(const CommandResult& result) { EXPECT_EQ(result.status, 0) << result.output; }

  /// Microseconds of a plan's computations, by row, as a profile predicts them.
  std::map<std::string, double> computations(const std::string& profile) const {
    expect_done(run("alpa-plan simulate plan.h5 --profile " + profile + " --trace trace.json --force"));
    std::ifstream file(path("trace.json"));
    std::map<std::string, double> durations;
    const nlohmann::json trace = nlohmann::json::parse(file);
    for (const auto& event : trace.at("traceEvents"))
      if (event.value("cat", "") == "compute")
        durations[event.at("name").get<std::string>() + event.at("args").dump()] = event.at("dur");
    return durations;
  }
};

TEST_F(CalibrateCommand, CorrectsAProfileByARunAndPredictsWithIt) {
  expect_done(train_plan("--steps 12 --timeline-steps 5"));
  EXPECT_THAT(names_in("run/timeline"), ElementsAre("plan.h5", "steps.h5"));
  EXPECT_EQ(read_plan(path("run/timeline/plan.h5")), read_plan(path("plan.h5")));
  CommandResult calibrated = calibrate();
  // Steps that other programs hold up by several times say nothing of products; another run may.
  for (int again = 0; again < 4 && calibrated.output.find("einsum f32") == std::string::npos; ++again) {
    std::filesystem::remove_all(path("run"));
    std::filesystem::remove(path("calibrated.h5"));
    expect_done(train_plan("--steps 12 --timeline-steps 5"));
    calibrated = calibrate();
  }
  expect_done(calibrated);
  EXPECT_THAT(
      calibrated.output,
      AllOf(HasSubstr("kind, in a step"), ContainsRegex("einsum f32 +[0-9.]+ % +[0-9.]+ us +[0-9.]+ us"),
            ContainsRegex("all-reduce within nodes "), HasSubstr("host and launches"),
            ContainsRegex("step: predicted [0-9.]+ [um]s -> [0-9.]+ [um]s, measured [0-9.]+ [um]s "
                          "\\(quartiles .* of 5 steps\\)")));

  const Profile before = read_profile(path("profile.h5")), after = read_profile(path("calibrated.h5"));
  std::map<std::string, double> factors;
  double call_gap_s = 0;
  for (const Correction& each : after.corrections) {
    EXPECT_EQ(each.run, "run");
    factors[each.kind] = each.factor;
    call_gap_s += each.added_s;
  }
  ASSERT_TRUE(factors.contains("einsum f32"));
  for (const auto& [signature, sample] : before.operators) {
    const auto factor = factors.find(cost_kind_of_operator(signature));
    EXPECT_DOUBLE_EQ(after.operators.at(signature).median_s,
                     sample.median_s * (factor == factors.end() ? 1 : factor->second) + call_gap_s)
        << signature;
  }
  const std::map<std::string, double> said = computations("profile.h5"), says = computations("calibrated.h5");
  ASSERT_EQ(said.size(), says.size());
  int products = 0;
  for (const auto& [row, us] : said) {
    if (!row.starts_with("einsum")) continue;
    ++products;
    EXPECT_NEAR(says.at(row), factors["einsum f32"] * us + 1e6 * call_gap_s, 1e-9 * says.at(row)) << row;
  }
  EXPECT_GT(products, 0);

  const CommandResult planned =
      run(std::string("alpa-plan ") + kModel + " --profile calibrated.h5 --micro-batches 2 --out again.h5");
  expect_done(planned);
  EXPECT_THAT(planned.output, HasSubstr("'calibrated.h5' is calibrated by run 'run'"));
  const CommandResult added =
      run(std::string("alpa-profile ") + kModel + " --threads 1 --out calibrated.h5", 2);
  EXPECT_EQ(added.status, 3) << added.output;
  EXPECT_THAT(added.output, HasSubstr("no measurement is added to corrected ones"));
}

// What is measured of a mesh is measured on the device of which the most is predicted, here the second.
TEST_F(CalibrateCommand, TakesTheRunOfAPlanWhoseDevicesUpdateOtherRows) {
  expect_done(run(std::string("alpa-plan ") + kModel +
                  " --profile profile.h5 --method data-parallel --micro-batches 2 --owners balanced --force "
                  "--out plan.h5"));
  expect_done(train_plan("--steps 12 --timeline-steps 5 --trace measured.json"));
  const CommandResult calibrated = calibrate();
  expect_done(calibrated);
  EXPECT_THAT(calibrated.output, ContainsRegex("reduce-scatter within nodes "));
}

TEST_F(CalibrateCommand, SaysWhatARunLacksThatKeptNoTimeline) {
  expect_done(train_plan("--steps 2"));
  CommandResult refused = calibrate();
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("error: run 'run' kept no timeline"),
                                    HasSubstr("try: train some steps with alpa-train --timeline-steps 20")));
  const CommandResult trained = train_plan("--steps 3 --timeline-steps 5");
  expect_done(trained);
  EXPECT_THAT(trained.output, HasSubstr("warning: the timeline is kept of 0 steps"));
  EXPECT_EQ(calibrate().status, 3);
}

TEST_F(CalibrateCommand, RefusesWhatDoesNotBelongToTheRun) {
  expect_done(train_plan("--steps 6 --timeline-steps 2"));
  make_plan("other", "--method serial");
  expect_done(
      run("alpa-profile " + tiny_gpt_ +
              " --micro-batch-samples 8 --repetitions 1 --least-sample-ms 0.1 --cold-mib 1 --threads 1 "
              "--time-budget 1 --out other_profile.h5",
          2));
  CommandResult refused = calibrate("other_profile.h5");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("error: the profile lacks most of what the run computed"));
  std::filesystem::copy_file(path("other.h5"), path("run/timeline/plan.h5"),
                             std::filesystem::copy_options::overwrite_existing);
  refused = calibrate();
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("and the plan beside it has program"));
  std::filesystem::resize_file(path("run/timeline/steps.h5"), 1000);
  EXPECT_EQ(calibrate().status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("calibrated.h5")));
}

}  // namespace
}  // namespace alpa
