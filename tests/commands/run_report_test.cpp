// The page of a run, as a browser without a network shows it, and its metrics for other programs.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/commands/shown_page.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RunReports : public Workplace {
 protected:
  /// Two jobs of three steps.
  void train() {
    make_plan("plan", "--devices 2 --method data-parallel");
    for (const char* steps : {"3", "6"}) {
      const CommandResult trained = this->run(
          std::string("alpa-train plan.h5 --data synthetic:64 --run-dir run --threads 1 --evaluate-every 3 "
                      "--steps ") +
              steps,
          2);
      ASSERT_EQ(trained.status, 0) << trained.output;
    }
  }
  std::string text(const std::string& file) const {
    std::ifstream in(path(file));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(RunReports, HaveFiguresCurvesAndThePlanOnAPageThatAsksNoNetwork) {
  train();
  const CommandResult reported = this->run("alpa-train report run --plan plan.h5 --out run.html");
  ASSERT_EQ(reported.status, 0) << reported.output;
  EXPECT_LT(std::filesystem::file_size(path("run.html")), 3'000'000u);
  EXPECT_EQ(asks_network(path("run.html")), "");
  const std::string dom = shown_page(path("run.html"));
  if (dom.empty()) GTEST_SKIP() << "there is no chromium-headless-shell and no chromium";
  const auto figures = cells_of(dom, "figures");
  ASSERT_GE(figures.size(), 8u) << dom.substr(0, 3000);
  EXPECT_EQ(figures[0].at(1), "6");
  EXPECT_EQ(figures[1].at(1), "2: they began with steps 1, 4");
  EXPECT_THAT(figures[4].at(1), AllOf(HasSubstr("(median); predicted "), HasSubstr("ratio ")));
  for (const char* curve : {"Loss", "Learning rate", "Gradient norm", "Tokens a second", "Step time"})
    EXPECT_THAT(dom, HasSubstr("aria-label=\"" + std::string(curve) + " over the steps\""));
  EXPECT_THAT(dom,
              AllOf(HasSubstr("a job went on with step 4"), HasSubstr("The plan: plan.h5"),
                    HasSubstr("timeline of the simulated step"), HasSubstr("the fullest rank of the run")));
}

TEST_F(RunReports, GiveMetricsToOtherPrograms) {
  train();
  const CommandResult reported =
      this->run("alpa-train report run --csv run.csv --json run.json --tensorboard board");
  ASSERT_EQ(reported.status, 0) << reported.output;
  const std::string csv = text("run.csv");
  EXPECT_TRUE(csv.starts_with("step,loss,evaluation_loss,gradient_norm,"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 7);
  const std::vector<double> losses = numbers("run", "loss");
  EXPECT_EQ(std::stod(csv.substr(csv.find("\n6,") + 3)), losses.at(5));
  const nlohmann::json whole = nlohmann::json::parse(text("run.json"));
  EXPECT_EQ(whole["format"], "alpa-run");
  ASSERT_EQ(whole["steps"].size(), losses.size());
  EXPECT_EQ(whole["steps"][5]["loss"], losses.at(5));
  const auto files = names_in("board");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(*files.begin(), HasSubstr("events.out.tfevents."));
  EXPECT_THAT(text("board/" + *files.begin()),
              AllOf(HasSubstr("brain.Event:2"), HasSubstr("evaluation_loss")));
}

TEST_F(RunReports, SayWhatIsMissing) {
  const CommandResult nothing = this->run("alpa-train report run");
  EXPECT_EQ(nothing.status, 2) << nothing.output;
  EXPECT_THAT(nothing.output, HasSubstr("there is nothing to write"));
  const CommandResult empty = this->run("alpa-train report . --csv run.csv");
  EXPECT_EQ(empty.status, 3) << empty.output;
  EXPECT_THAT(empty.output, HasSubstr("has no metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(path("run.csv")));
}

}  // namespace
}  // namespace alpa
