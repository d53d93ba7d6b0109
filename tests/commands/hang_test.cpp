// A rank that is there but does nothing: the others name it, wait for it as long as the options say,
// and then end the job.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kLostPeer = 7;

class HangingRank : public Workplace {
 protected:
  void wait_for_steps() const {
    wait_until("some steps are made", [&] {
      std::ifstream file(path("run") / "metrics.jsonl");
      int lines = 0;
      for (std::string line; std::getline(file, line);) ++lines;
      return lines >= 3;
    });
  }

  /// A training that goes wrong at files: `rank` is frozen where it calls `function` for a checkpoint.
  std::string frozen_at_files(int rank, const std::string& function, const std::string& options) const {
    return "env LD_PRELOAD=" FREEZE_AT_FILES " FREEZE_RANK=" + std::to_string(rank) +
           " FREEZE_IN=" + function + " " + training("data", "run", "--hang-timeout 60 " + options);
  }

  void expect_end(RunningRanks& run, int late = 1, const std::string& option = "--hang-timeout") {
    EXPECT_EQ(run.wait(), kLostPeer) << run.log();
    EXPECT_THAT(run.log(), AllOf(HasSubstr("error: waiting for rank " + std::to_string(late) + " on "),
                                 HasSubstr(option)));
    for (int rank = 0; rank < 2; ++rank)
      wait_until("rank " + std::to_string(rank) + " has left", [&] { return !run.is_running(rank); });
  }
};

TEST_F(HangingRank, EndsATrainingWithItsNameAndTheStatusOfALostPeer) {
  make_plan("data", "--devices 2 --method data-parallel");
  RunningRanks run(path(""), training("data", "run", "--steps 1000000 --hang-timeout 10"), 2);
  wait_for_steps();
  run.signal(1, SIGSTOP);
  expect_end(run);
}

TEST_F(HangingRank, IsReportedWithTheInstructionThatWaitsForIt) {
  for (const std::string overlap : {"none", "all"}) {
    make_plan(overlap, "--devices 2 --method data-parallel --overlap " + overlap);
    std::filesystem::remove_all(path("run"));
    RunningRanks run(path(""), training(overlap, "run", "--steps 1000000 --hang-timeout 2"), 2);
    wait_for_steps();
    run.signal(1, SIGSTOP);
    expect_end(run);
    EXPECT_THAT(run.log(), ContainsRegex(", in all-reduce of [0-9.]+ [KM]?i?B: .* of the (update|backward)"));
  }
}

TEST_F(HangingRank, InASaveEndsATrainingWithItsName) {
  make_plan("data", "--devices 2 --method data-parallel");
  RunningRanks run(path(""), frozen_at_files(1, "fsync", "--steps 2 --file-timeout 2"), 2);
  expect_end(run, 1, "--file-timeout");
  EXPECT_THAT(run.log(), HasSubstr("while saving the checkpoint of step 2"));
}

TEST_F(HangingRank, InALoadOrAVerificationEndsATrainingWithItsName) {
  make_plan("data", "--devices 2 --method data-parallel");
  train("data", 2, "run", "--steps 2");
  const std::string resume = "--steps 4 --resume must --file-timeout 2";
  {
    RunningRanks run(path(""), frozen_at_files(1, "pread", resume), 2);
    expect_end(run, 1, "--file-timeout");
    EXPECT_THAT(run.log(), HasSubstr("while loading 'run/checkpoints/step-00000002.h5'"));
  }
  RunningRanks run(path(""), frozen_at_files(0, "pread", resume), 2);
  expect_end(run, 0, "--file-timeout");
  EXPECT_THAT(run.log(), HasSubstr("while looking for the checkpoint to go on from"));
}

TEST_F(HangingRank, InASaveIsNotWaitedForAfterSigterm) {
  make_plan("data", "--devices 2 --method data-parallel");
  RunningRanks run(path(""), frozen_at_files(1, "fsync", "--steps 2 --file-timeout 20"), 2);
  wait_until("it is reported", [&] { return run.log().find("waiting for rank 1 on ") != std::string::npos; });
  run.signal(0, SIGTERM);
  expect_end(run, 1, "when a signal asked to end");
}

TEST_F(HangingRank, EndsAProfileWithItsNameAndTheStatusOfALostPeer) {
  RunningRanks run(path(""),
                   "alpa-profile " + tiny_gpt_ +
                       " --out profile.h5 --cold-mib 1 --least-sample-ms 20 --repetitions 20 "
                       "--hang-timeout 10",
                   2);
  wait_until("progress is printed", [&] { return run.log().find(" measured in ") != std::string::npos; });
  run.signal(1, SIGSTOP);
  expect_end(run);
}

TEST_F(HangingRank, ThatGoesOnInTimeIsWaitedFor) {
  make_mixed_plan("mixed");
  RunningRanks run(path(""), training("mixed", "run", "--steps 500 --checkpoint-every 0 --hang-timeout 20"),
                   4);
  wait_for_steps();
  run.signal(1, SIGSTOP);
  wait_until("it is printed", [&] { return run.log().find("waiting for rank 1 on ") != std::string::npos; });
  run.signal(1, SIGCONT);
  EXPECT_EQ(run.wait(), 0) << run.log();
  EXPECT_THAT(run.log(), Not(HasSubstr("error: ")));
  EXPECT_EQ(numbers("run", "step").size(), 500u);
}

}  // namespace
}  // namespace alpa
