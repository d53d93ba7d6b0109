// Whatever asks a run to stop, all ranks save a checkpoint together and exit with 75, and the same command
// goes on from there to the result of a run that was never stopped.
#include <gmock/gmock.h>

#include <csignal>
#include <ctime>
#include <fstream>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kStopped = 75;

/// Endless but for what the test does to it, and with no checkpoint but that of the stop.
const std::string kEndless = "--steps 1000000 --checkpoint-every 0 ";

class Stops : public Workplace {
 protected:
  void SetUp() override { make_mixed_plan("mixed"); }

  std::string endless(const std::string& options = "") const {
    return training("mixed", "run", kEndless + options);
  }

  void wait_for_steps() const {
    wait_until("some steps are made", [&] {
      std::ifstream file(path("run") / "metrics.jsonl");
      int lines = 0;
      for (std::string line; std::getline(file, line);) ++lines;
      return lines >= 3;
    });
  }

  /// The run has stopped: there is one checkpoint, of the last step logged, and it can be gone on from.
  void expect_stopped(int status, const std::string& log, const std::string& reason) {
    EXPECT_EQ(status, kStopped) << log;
    EXPECT_THAT(log, AllOf(HasSubstr("stopped after step"), HasSubstr("because of " + reason),
                           Not(HasSubstr("error"))));
    const std::vector<double> steps = numbers("run", "step");
    ASSERT_FALSE(steps.empty());
    const int step = static_cast<int>(steps.back());
    EXPECT_EQ(names_in("run/checkpoints"), std::vector<std::string>{checkpoint("run", step).filename()});
    const std::string end = "--steps " + std::to_string(step + 3) + " --checkpoint-every 0";
    train("mixed", 4, "run", end + " --resume must");
    train("mixed", 4, "whole", end);
    EXPECT_EQ(difference(checkpoint("whole", step + 3), checkpoint("run", step + 3)), "");
    EXPECT_EQ(numbers("whole", "loss"), numbers("run", "loss"));
  }
};

TEST_F(Stops, OnSigtermToAnyRank) {
  RunningRanks ranks(path(""), endless(), 4);
  wait_for_steps();
  ranks.signal(2, SIGTERM);
  const int status = ranks.wait();
  expect_stopped(status, ranks.log(), "a signal");
}

TEST_F(Stops, OnSigusr1ToAnyRank) {
  RunningRanks ranks(path(""), endless(), 4);
  wait_for_steps();
  ranks.signal(3, SIGUSR1);
  const int status = ranks.wait();
  expect_stopped(status, ranks.log(), "a signal");
}

TEST_F(Stops, OnTheFileStopWhichStays) {
  RunningRanks ranks(path(""), endless(), 4);
  wait_for_steps();
  write("run/STOP", "");
  const int status = ranks.wait();
  EXPECT_TRUE(std::filesystem::remove(path("run/STOP")));
  expect_stopped(status, ranks.log(), "the file STOP");
}

TEST_F(Stops, BeforeTheLongestTimeHasPassed) {
  const CommandResult result = run(endless("--max-hours 0.001"), 4);
  expect_stopped(result.status, result.output, "the time limit");
}

TEST_F(Stops, BeforeTheEndOfTheJob) {
  const std::string in_five_seconds = std::to_string(std::time(nullptr) + 5);
  const CommandResult result = run(endless("--end-time " + in_five_seconds), 4);
  expect_stopped(result.status, result.output, "the time limit");
}

TEST_F(Stops, BeforeTheEndOfTheJobThatSlurmReports) {
  const std::string in_five_seconds = std::to_string(std::time(nullptr) + 5);
  const CommandResult result = run("env SLURM_JOB_END_TIME=" + in_five_seconds + " " + endless(), 4);
  expect_stopped(result.status, result.output, "the time limit");
}

TEST_F(Stops, NotOnTheFileSaveWhichAsksForACheckpoint) {
  RunningRanks ranks(path(""), endless(), 4);
  wait_for_steps();
  write("run/SAVE", "");
  wait_until("the file is taken away", [&] { return !std::filesystem::exists(path("run/SAVE")); });
  EXPECT_THAT(names_in("run/checkpoints"), Not(IsEmpty()));
  const std::size_t steps = numbers("run", "step").size();
  wait_until("the run goes on", [&] { return numbers("run", "step").size() > steps; });
  ranks.signal(0, SIGTERM);
  EXPECT_EQ(ranks.wait(), kStopped);
}

TEST_F(Stops, WithAllLinesOfMetricsThoughTheFolderWasRemoved) {
  RunningRanks ranks(path(""), endless(), 4);
  wait_for_steps();
  std::filesystem::remove_all(path("run"));
  ranks.signal(0, SIGTERM);
  const int status = ranks.wait();
  EXPECT_THAT(ranks.log(), HasSubstr("'run' was removed during the run: it is made again"));
  EXPECT_EQ(numbers("run", "step").at(0), 1);
  expect_stopped(status, ranks.log(), "a signal");
}

TEST_F(Stops, NotBecauseOfASecondRunWhichReadsNothing) {
  RunningRanks ranks(path(""), training("mixed", "run", "--steps 1000000 --checkpoint-every 1"), 4);
  wait_for_steps();
  const CommandResult second = run(training("mixed", "run", "--steps 1000000"), 4);
  EXPECT_EQ(second.status, 3);
  EXPECT_THAT(second.output,
              AllOf(HasSubstr("another run trains into 'run': process "), Not(HasSubstr("resuming from"))));
  ranks.signal(0, SIGTERM);
  EXPECT_EQ(ranks.wait(), kStopped);
}

/// A search of minutes, stopped when its log says how far it is.
class StopsOfAPlan : public Workplace {
 protected:
  int stop_when(const std::string& line, int signal, const std::string& model,
                const std::string& command = "alpa-plan", const std::string& out = "plan.h5") {
    RunningRanks search(
        path(""),
        command + " " ALPA_SOURCE_DIR "/configs/models/" + model +
            " --cluster " ALPA_SOURCE_DIR "/configs/clusters/p3.16xlarge-8.toml --threads 1 --out " + out,
        1);
    wait_until("the search is under way", [&] { return search.log().find(line) != std::string::npos; });
    search.signal(0, signal);
    const int status = search.wait();
    log_ = search.log();
    return status;
  }
  std::string log_;
};

TEST_F(StopsOfAPlan, OnCtrlCWriteTheBestPlanSoFar) {
  EXPECT_EQ(stop_when("best so far", SIGINT, "gpt-1.3b.toml"), kStopped) << log_;
  EXPECT_THAT(log_, AllOf(HasSubstr("the search was stopped (SIGINT) in: "),
                          HasSubstr("% above the best of "), HasSubstr("'plan.h5' is the best plan so far")));
  EXPECT_EQ(run("alpa-plan check plan.h5").status, 0);
  EXPECT_THAT(run("alpa-plan explain plan.h5").output, HasSubstr("the search was cut short"));
}

TEST_F(StopsOfAPlan, OnSigtermBeforeThereIsOneSayThat) {
  EXPECT_EQ(stop_when(": meshes priced", SIGTERM, "wide-resnet-13b.toml --method search --log-level debug"),
            kStopped)
      << log_;
  EXPECT_THAT(log_, HasSubstr("error: no plan was found yet: the search was stopped (SIGTERM) in: "));
  EXPECT_FALSE(std::filesystem::exists(path("plan.h5")));
}

TEST_F(StopsOfAPlan, OnCtrlCASweepShowsWhatWasPlannedByThen) {
  EXPECT_EQ(stop_when("'p3.16xlarge-8', 2 devices: ", SIGINT, "gpt-125m.toml --devices 1,2,64 --effort quick",
                      "alpa-plan sweep", "sweep.html"),
            kStopped)
      << log_;
  EXPECT_THAT(log_, AllOf(HasSubstr("warning: the sweep was stopped: "), HasSubstr("\n      2  "),
                          Not(HasSubstr("\n     64  "))));
  EXPECT_TRUE(std::filesystem::exists(path("sweep.html")));
}

class StopsOfAProfile : public Workplace {};

TEST_F(StopsOfAProfile, OnASignalToAnyRankKeepWhatWasMeasured) {
  const std::string command =
      "alpa-profile " + tiny_gpt_ + " --out profile.h5 --cold-mib 1 --micro-batch-samples 4 ";
  RunningRanks ranks(path(""), command + "--least-sample-ms 100", 2);
  wait_until("progress is printed", [&] { return ranks.log().find(" measured in ") != std::string::npos; });
  ranks.signal(1, SIGTERM);
  EXPECT_EQ(ranks.wait(), kStopped) << ranks.log();
  EXPECT_EQ(run("h5ls profile.h5/operators").status, 0);
  const CommandResult rest = run(command + "--least-sample-ms 0.01 --repetitions 1", 2);
  EXPECT_EQ(rest.status, 0) << rest.output;
  EXPECT_THAT(rest.output,
              AllOf(HasSubstr("known before"), Not(HasSubstr(", 0 known before")), HasSubstr(", 0 left")));
}

}  // namespace
}  // namespace alpa
