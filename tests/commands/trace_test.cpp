// What a plan promises and what its run does are told in the same rows.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "libalpa/plan/plan_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Trace : public Workplace {
 protected:
  /// One text per row, without its times; sorted.
  std::multiset<std::string> rows(const std::string& name) const {
    std::ifstream file(path(name));
    std::multiset<std::string> rows;
    const nlohmann::json trace = nlohmann::json::parse(file);
    for (const auto& event : trace.at("traceEvents")) {
      nlohmann::json row = event;
      row.erase("ts");
      row.erase("dur");
      rows.insert(row.dump());
    }
    return rows;
  }
};

TEST_F(Trace, OfARunHasTheRowsOfTheSimulation) {
  make_mixed_plan("mixed");
  const CommandResult simulation = run("alpa-plan simulate mixed.h5 --trace planned.json");
  ASSERT_EQ(simulation.status, 0) << simulation.output;
  train("mixed", 4, "run", "--steps 4 --trace measured.json");
  EXPECT_THAT(rows("planned.json"), SizeIs(testing::Gt(500)));
  EXPECT_EQ(rows("planned.json"), rows("measured.json"));
}

TEST_F(Trace, OfTheWholeStepIsItsPredictionBesideIt) {
  make_plan("serial", "--method serial");
  const CommandResult trained = run(training("serial", "run", "--steps 3 --checkpoint-every 0"));
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("step time: predicted "));
  EXPECT_THAT(trained.output, HasSubstr("; arena: predicted "));
  const double predicted = read_plan(path("serial.h5")).prediction.step_s;
  EXPECT_GT(predicted, 0);
  EXPECT_THAT(numbers("run", "predicted_step_s"), ElementsAre(predicted, predicted, predicted));
  EXPECT_THAT(numbers("run", "step_s"), SizeIs(3));
}

class DryRun : public Workplace {};

TEST_F(DryRun, ChecksEverythingAndWritesNothing) {
  make_mixed_plan("mixed");
  const std::vector<std::string> before = names_in("");
  const CommandResult fresh = run(training("mixed", "run", "--dry-run --trace trace.json"), 4);
  EXPECT_EQ(fresh.status, 0) << fresh.output;
  EXPECT_THAT(fresh.output, HasSubstr("dry run: plan, data and memory"));
  EXPECT_EQ(run(training("mixed", "run", "--dry-run --resume must"), 4).status, 3);
  EXPECT_EQ(names_in(""), before);

  train("mixed", 4, "run", "--steps 2");
  const std::vector<std::string> files = names_in("run/checkpoints");
  const CommandResult resumed = run(training("mixed", "run", "--dry-run --resume must"), 4);
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resuming from step 2"));
  EXPECT_EQ(names_in("run/checkpoints"), files);
}

class CheckedDevice : public Workplace {};

// Buffers of this device cannot be read as host memory: whatever the run-time does to them it does by the
// device.
TEST_F(CheckedDevice, TrainsAsTheCpuBitForBit) {
  make_mixed_plan("mixed");
  train("mixed", 4, "cpu", "--steps 4 --evaluate-every 2");
  train("mixed", 4, "checked", "--steps 4 --evaluate-every 2 --device checked-cpu");
  EXPECT_EQ(difference(checkpoint("cpu", 4), checkpoint("checked", 4)), "");
  EXPECT_EQ(numbers("cpu", "loss"), numbers("checked", "loss"));
}

}  // namespace
}  // namespace alpa
