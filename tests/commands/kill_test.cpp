// Killed at any moment of its saves, a run leaves a newest checkpoint that is whole, and goes on from it;
// what is measured or converted is gone on with too.
#include <gmock/gmock.h>

#include <csignal>
#include <random>

#include "libalpa/checkpoint/run_folder.h"
#include "libalpa/cluster/profile_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class KilledRun : public Workplace {
 protected:
  std::int64_t newest_step() {
    Log log("test", LogLevel::warning);
    testing::internal::CaptureStderr();  // a damaged checkpoint that is passed over would be reported here
    const std::optional<FoundCheckpoint> newest = newest_checkpoint(path("run"), log);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    return newest ? newest->facts.step : 0;
  }

  std::int64_t published_step() const {
    const std::vector<std::int64_t> steps = checkpointed_steps(path("run"));
    return steps.empty() ? 0 : steps.back();
  }

  /// Goes on with the run, which saves after every step, and kills one of its ranks.
  void kill_after(double delay_s, const std::string& plan, int ranks, int rank) {
    const std::int64_t before = published_step();
    const std::string resume = before == 0 ? "auto" : "must";
    RunningRanks run(path(""),
                     training(plan, "run", "--steps 1000000 --checkpoint-every 1 --resume " + resume), ranks);
    wait_until("another checkpoint is published", [&] { return published_step() > before; });
    const timespec delay{0, static_cast<long>(delay_s * 1e9)};
    nanosleep(&delay, nullptr);
    run.signal(rank, SIGKILL);
    EXPECT_NE(run.wait(), 0);
    if (before == 0) return;
    EXPECT_THAT(run.log(), HasSubstr("resuming from step " + std::to_string(before) + " "));
  }
};

TEST_F(KilledRun, FiftyTimesTheNewestCheckpointIsWholeAndTheRunGoesOn) {
  make_plan("serial", "--method serial");
  make_plan("zero", "--method zero-1 --devices 2");
  std::mt19937 random(20240521);
  std::uniform_real_distribution<double> moment_s(0, 0.1);  // a few saves
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const bool together = round % 5 == 4;
    kill_after(moment_s(random), together ? "zero" : "serial", together ? 2 : 1,
               together ? round / 5 % 2 : 0);
    EXPECT_EQ(newest_step(), published_step()) << "the newest checkpoint is damaged";
    // Of one more the writer may have been killed. (Those that are whole are trimmed after a save, not before
    // it.)
    EXPECT_LE(names_in("run/checkpoints").size(), checkpointed_steps(path("run")).size() + 1);
  }
  const std::int64_t end = published_step() + 1;
  train("serial", 1, "run", "--resume must --steps " + std::to_string(end));
  EXPECT_THAT(names_in("run/checkpoints"), AllOf(SizeIs(2), Each(ContainsRegex("^step-[0-9]+\\.h5$"))));
  EXPECT_THAT(numbers("run", "step"), SizeIs(end));  // each step once, however often it was done
}

// Within a minute, which is how long wait_until() waits.
TEST_F(KilledRun, OfFourRanksOneIsEnoughToEndAll) {
  make_mixed_plan("mixed");
  RunningRanks run(path(""), training("mixed", "run", "--steps 1000000 --checkpoint-every 20"), 4);
  wait_until("a checkpoint is published", [&] { return published_step() > 0; });
  run.signal(2, SIGKILL);
  EXPECT_NE(run.wait(), 0);
  for (int rank = 0; rank < 4; ++rank)
    wait_until("rank " + std::to_string(rank) + " has left", [&] { return !run.is_running(rank); });
  EXPECT_EQ(newest_step(), published_step());
}

class KilledProfile : public Workplace {};

TEST_F(KilledProfile, IsWholeAndGoneOnFrom) {
  const std::string command =
      "alpa-profile " + tiny_gpt_ + " --out profile.h5 --cold-mib 1 --micro-batch-samples 4 ";
  ASSERT_EQ(run(command + "--time-budget 0.001", 2).status, 0);
  const Profile before = read_profile(path("profile.h5"));
  {
    RunningRanks killed(path(""), command + "--least-sample-ms 20 --repetitions 20", 2);
    wait_until("progress is printed",
               [&] { return killed.log().find(" measured in ") != std::string::npos; });
    killed.signal(1, SIGKILL);
    EXPECT_NE(killed.wait(), 0);
  }
  EXPECT_GE(read_profile(path("profile.h5")).collectives.size(), before.collectives.size());
  EXPECT_EQ(names_in("."), (std::vector<std::string>{"log", "profile.h5", "rank-0", "rank-1"}));
  const CommandResult rest = run(command + "--least-sample-ms 0.01 --repetitions 1", 2);
  EXPECT_EQ(rest.status, 0) << rest.output;
  EXPECT_THAT(rest.output, AllOf(HasSubstr(" known before, 0 failed, 0 left"), Not(HasSubstr(", 0 known"))));
}

class KilledConversion : public Workplace {};

TEST_F(KilledConversion, IsGoneOnWithAndGivesTheSameFiles) {
  std::string lines;
  for (int i = 0; i < 40'000; ++i)
    lines += "{\"text\": \"In the beginning was number " + std::to_string(i) + ", and then others came.\"}\n";
  write("corpus/first.txt", "a rose is a rose");
  write("corpus/lines.jsonl", lines);
  const std::string command = "alpa-train convert corpus --hold-out 0.1 --tokenizer " ALPA_SOURCE_DIR
                              "/tests/reference/tokenizers/gpt2.json --out ";
  ASSERT_EQ(run(command + "whole.h5").status, 0);
  {
    RunningRanks killed(path(""),
                        "env LD_PRELOAD=" FREEZE_AT_FILES " SLOW_READS=/corpus/ " + command + "out.h5", 1);
    wait_until("a record is written", [&] { return std::filesystem::exists(path("out.h5.partial-record")); });
    killed.signal(0, SIGKILL);
    EXPECT_NE(killed.wait(), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path("out.h5")));
  const CommandResult rest = run(command + "out.h5");
  EXPECT_EQ(rest.status, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("goes on with file 2 of 2 behind its line "));
  EXPECT_EQ(difference("whole.h5", "out.h5"), "");
  EXPECT_EQ(difference("whole-held-out.h5", "out-held-out.h5"), "");
  EXPECT_THAT(names_in("."), ElementsAre("corpus", "log", "out-held-out.h5", "out.h5", "rank-0",
                                         "whole-held-out.h5", "whole.h5"));
}

}  // namespace
}  // namespace alpa
