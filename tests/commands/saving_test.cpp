// Checkpoints that are written while training goes on: what is in them, and what becomes of one under way.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/commands/workplace.h"
#include "tests/h5/damage.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const testing::Matcher<std::string> kWhole = ContainsRegex("^step-[0-9]+\\.h5$");

class Saving : public Workplace {
 protected:
  void SetUp() override { make_plan("data", "--devices 4 --method data-parallel"); }

  /// A run whose background writes wait until let_writes_go().
  std::string held(const std::string& options = "--checkpoint-every 20", const std::string& plan = "data") {
    write("hold", "");
    return "env LD_PRELOAD=" FREEZE_AT_FILES " HOLD_WRITES=" + path("hold").string() + " " +
           training(plan, "run", "--steps 1000000 " + options);
  }
  void let_writes_go() const { std::filesystem::remove(path("hold")); }

  int steps_done() const {
    std::ifstream file(path("run") / "metrics.jsonl");
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  void wait_for_step(int step) const {
    wait_until("step " + std::to_string(step) + " is made", [&] { return steps_done() >= step; });
  }

  std::string saved(int step) const { return checkpoint("run", step).filename(); }
};

TEST_F(Saving, IsInTheMetricsOfTheStepThatFollows) {
  train("data", 4, "run", "--steps 3 --checkpoint-every 2 --checkpoints sync");
  std::ifstream metrics(path("run") / "metrics.jsonl");
  std::vector<std::string> lines(3);
  for (std::string& line : lines) std::getline(metrics, line);
  EXPECT_THAT(lines[1], Not(HasSubstr("saved_step")));
  EXPECT_THAT(lines[2], HasSubstr(fmt::format(R"("saved_step":2,"saved_bytes":{},"saved_s":)",
                                              std::filesystem::file_size(checkpoint("run", 2)))));
}

TEST_F(Saving, BesideTrainingLeavesTheSameFilesAsWhileItWaits) {
  const std::string often = "--steps 7 --checkpoint-every 2 --evaluate-every 1 --keep 0 --checkpoints ";
  train("data", 4, "beside", often + "async");
  train("data", 4, "waiting", often + "sync");
  EXPECT_EQ(names_in("beside/checkpoints"), names_in("waiting/checkpoints"));
  for (const int step : {2, 4, 6, 7})
    EXPECT_EQ(difference(checkpoint("beside", step), checkpoint("waiting", step)), "") << step;
  for (const char* number : {"loss", "evaluation_loss"})
    EXPECT_EQ(numbers("beside", number), numbers("waiting", number));
}

TEST_F(Saving, BesideTrainingIsGoneOnFromBitForBit) {
  train("data", 4, "run", "--steps 7 --checkpoint-every 3 --keep 0");
  const std::vector<double> losses = numbers("run", "loss");
  std::filesystem::copy(checkpoint("run", 7), path("whole.h5"));
  std::filesystem::remove(checkpoint("run", 7));
  train("data", 4, "run", "--steps 7 --resume must");
  EXPECT_EQ(numbers("run", "loss"), losses);
  EXPECT_EQ(difference(path("whole.h5"), checkpoint("run", 7)), "");
}

TEST_F(Saving, GoesOnBesideTrainingAndIsWaitedForByTheNext) {
  RunningRanks ranks(path(""), held(), 4);
  wait_for_step(30);
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(HasSubstr(saved(20) + ".partial-")));
  wait_for_step(40);
  EXPECT_THAT(ranks.log(), Not(HasSubstr("the checkpoint of step 20 was saved")));
  let_writes_go();
  wait_for_step(41);
  const std::string log = ranks.log();
  EXPECT_LT(log.find("the checkpoint of step 20 was saved by step "), log.find("step 40/1000000 ")) << log;
  ranks.signal(0, SIGTERM);
  EXPECT_EQ(ranks.wait(), 75);
}

TEST_F(Saving, IsPublishedBeforeTheLastOnSigterm) {
  RunningRanks ranks(path(""), held("--checkpoint-every 20 --keep 0"), 4);
  wait_for_step(25);
  ranks.signal(2, SIGTERM);
  let_writes_go();
  EXPECT_EQ(ranks.wait(), 75) << ranks.log();
  EXPECT_THAT(ranks.log(), AllOf(HasSubstr("the checkpoint of step 20 was saved"),
                                 HasSubstr("because of a signal"), Not(HasSubstr("error"))));
  const std::vector<std::string> names = names_in("run/checkpoints");
  EXPECT_THAT(names, Each(kWhole));
  EXPECT_EQ(names.front(), saved(20));
  EXPECT_EQ(names.back(), saved(steps_done()));
}

TEST_F(Saving, ThatWasKilledLeavesAPartialFileThatTheNextStartRemoves) {
  train("data", 4, "run", "--steps 10");
  {
    RunningRanks ranks(path(""), held("--checkpoint-every 20 --resume must"), 4);
    wait_for_step(25);
    ranks.signal(1, SIGKILL);
    EXPECT_GT(ranks.wait(), 0) << ranks.log();
  }
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(saved(10), HasSubstr(saved(20) + ".partial-")));
  const CommandResult next = run(training("data", "run", "--steps 12 --resume must"), 4);
  EXPECT_EQ(next.status, 0) << next.output;
  EXPECT_THAT(next.output,
              AllOf(HasSubstr("resuming from step 10 "), HasSubstr(", which was never completed")));
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(saved(10), saved(12)));
}

TEST_F(Saving, ToAFullDiskEndsTheRunWithTheCheckpointBefore) {
  train("data", 4, "run", "--steps 10");
  const CommandResult full = run("env FULL_DISK=1 LD_PRELOAD=" FREEZE_AT_FILES " " +
                                     training("data", "run", "--steps 1000000 --checkpoint-every 20"),
                                 4);
  EXPECT_EQ(full.status, 1) << full.output;
  EXPECT_THAT(full.output, AllOf(HasSubstr("No space left on device"), HasSubstr("free some space or quota"),
                                 HasSubstr("while saving the checkpoint of step 20")));
  EXPECT_EQ(full.output.find("error: "), full.output.rfind("error: ")) << full.output;
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(saved(10)));
}

TEST_F(Saving, IsPublishedBeforeALossThatIsNotFiniteEndsTheRun) {
  write("steep.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"steep\"\n[training]\nlearning_rate = 1e20\n");
  make_plan("steep", "--devices 4 --method data-parallel", "steep.toml");
  RunningRanks ranks(path(""), held("--checkpoint-every 1", "steep"), 4);
  wait_for_step(1);
  let_writes_go();
  EXPECT_EQ(ranks.wait(), 6) << ranks.log();
  EXPECT_THAT(ranks.log(), HasSubstr("the checkpoint of step 1 was saved by step 1"));
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(saved(1)));
}

TEST_F(Saving, IntoAFolderThatIsRemovedMeanwhileIsDropped) {
  RunningRanks ranks(path(""), held(), 4);
  wait_for_step(25);
  std::filesystem::remove_all(path("run"));
  let_writes_go();
  wait_until("the checkpoint is dropped", [&] {
    return ranks.log().find("the checkpoint of step 20 was removed while it was written") !=
           std::string::npos;
  });
  ranks.signal(0, SIGTERM);
  EXPECT_EQ(ranks.wait(), 75) << ranks.log();
  EXPECT_THAT(names_in("run/checkpoints"), Each(kWhole));
}

TEST_F(Saving, IsSynchronousWhereTheFileSaveAsksForIt) {
  RunningRanks ranks(path(""), held("--checkpoint-every 0"), 4);
  wait_for_step(3);
  write("run/SAVE", "");
  wait_until("the file is taken away", [&] { return !std::filesystem::exists(path("run/SAVE")); });
  EXPECT_THAT(names_in("run/checkpoints"), ElementsAre(kWhole));
  ranks.signal(0, SIGTERM);
  EXPECT_EQ(ranks.wait(), 75) << ranks.log();
}

}  // namespace
}  // namespace alpa
