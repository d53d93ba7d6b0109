// alpa-train tune on real ranks: a plan comes out that is trained by, whatever happens on the way.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "libalpa/planner/tuning/tuning_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

class Tune : public Workplace {
 protected:
  void SetUp() override { make_plan("plan", "--method data-parallel --micro-batches 2"); }

  std::string tuning(const std::string& options, const std::string& plan = "plan") const {
    return "alpa-train tune " + plan +
           ".h5 --data synthetic:61 --out tuned.h5 --warm-up-steps 1 --timed-steps 2 " + options;
  }
  std::vector<TuningTrial> trials() const { return read_tuning(path("tuned.h5")).trials; }
  std::vector<std::string> faults() const {
    std::vector<std::string> faults;
    for (const TuningTrial& trial : trials()) faults.push_back(trial.fault);
    return faults;
  }
  void wait_for_trials(std::size_t count) const {
    wait_until("some trials are made",
               [&] { return std::filesystem::exists(path("tuned.h5")) && trials().size() >= count; });
  }
};

TEST_F(Tune, MakesAPlanToTrainBy) {
  const CommandResult result = run(tuning("--trials 14 --explored 20"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("trial 14 of 14 (search): "), HasSubstr("once more"),
                                   HasSubstr("with learned residual"), HasSubstr("over the best preset")));
  EXPECT_EQ(trials().size(), 14u);
  EXPECT_THAT(faults(), Each(""));
  EXPECT_EQ(run("alpa-plan check tuned.h5").status, 0);
  train("tuned", 4, "run", "--steps 2");
  train("plan", 4, "plain", "--steps 2");
  const std::vector<double> tuned = numbers("run", "loss"), plain = numbers("plain", "loss");
  for (std::size_t step = 0; step < 2; ++step) EXPECT_NEAR(tuned[step], plain[step], 1e-4);
}

/// Trials end with the loss of the first one or have a fault: this trains by 24 mixtures of all there is.
TEST_F(Tune, TriesNothingButPlansOfTheModel) {
  const CommandResult result = run(tuning("--trials 24 --method random"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(faults(), Each(""));
}

TEST_F(Tune, GoesOnFromItsFile) {
  ASSERT_EQ(run(tuning("--trials 9 --explored 20"), 4).status, 0);
  const std::vector<TuningTrial> before = trials();
  const CommandResult result = run(tuning("--trials 12 --explored 20"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("goes on after 9 trials of 'tuned.h5'"));
  const std::vector<TuningTrial> after = trials();
  ASSERT_EQ(after.size(), 12u);
  for (std::size_t t = 0; t < before.size(); ++t) EXPECT_EQ(after[t].choice, before[t].choice);
  make_plan("other", "--method zero-1 --micro-batches 2");
  const CommandResult other = run(tuning("--trials 12", "other"), 4);
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.output, HasSubstr("'tuned.h5' has trials of another plan"));
  const CommandResult anew = run(tuning("--trials 4 --anew --explored 20", "other"), 4);
  ASSERT_EQ(anew.status, 0) << anew.output;
  EXPECT_THAT(anew.output, HasSubstr("starts over, and learns from them"));
  EXPECT_EQ(trials().front().origin, "transferred");
}

TEST_F(Tune, StopsAndGoesOn) {
  RunningRanks ranks(path(""), tuning("--trials 100000 --explored 20"), 4);
  wait_for_trials(3);
  write("STOP", "");
  EXPECT_EQ(ranks.wait(), 75);
  EXPECT_THAT(ranks.log(), HasSubstr("because of the file STOP"));
  std::filesystem::remove(path("STOP"));
  const std::size_t before = trials().size();
  const CommandResult timed = run(tuning("--trials 100000 --explored 20 --max-hours 0.001"), 4);
  EXPECT_EQ(timed.status, 75) << timed.output;
  EXPECT_THAT(timed.output, HasSubstr("because of the time limit"));
  EXPECT_GE(trials().size(), before);
  EXPECT_EQ(run("alpa-plan check tuned.h5").status, 0);
}

TEST_F(Tune, KeepsWhatIsKnownWhereARankDies) {
  RunningRanks ranks(path(""), tuning("--trials 100000 --explored 20 --hang-timeout 20"), 4);
  wait_for_trials(3);
  ranks.signal(2, SIGKILL);
  EXPECT_NE(ranks.wait(), 0);
  const std::size_t before = trials().size();
  EXPECT_GE(before, 3u);
  const CommandResult result = run(tuning("--trials " + std::to_string(before + 2) + " --explored 20"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(trials().size(), before + 2);
}

TEST_F(Tune, PassesOverWhatDoesNotFit) {
  // Whole states do not fit any more, sharded ones do.
  const std::string tight = path("tight.toml").string();
  std::ifstream whole(cluster_);
  std::string text(std::istreambuf_iterator<char>(whole), {});
  const auto at = text.find("memory_gib");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, text.find('\n', at) - at, "memory_gib = 0.00125");
  write("tight.toml", text);
  const CommandResult planned = run("alpa-plan " + tiny_gpt_ + " --cluster " + tight +
                                    " --method zero-3 --micro-batches 2 --out tight.h5");
  ASSERT_EQ(planned.status, 0) << planned.output;
  const CommandResult result = run(tuning("--trials 10 --explored 20", "tight"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(faults(), AllOf(Contains(""), Contains(HasSubstr("of a device, which has"))));
}

TEST_F(Tune, WarmsUpAndRunsOnEmulatedDevices) {
  ASSERT_EQ(run(tuning("--trials 10 --explored 20 --device emulated"), 4).status, 0);
  std::filesystem::rename(path("tuned.h5"), path("old.h5"));
  const CommandResult result =
      run(tuning("--trials 4 --explored 20 --device emulated --transfer-from old.h5"), 4);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(trials().front().origin, "transferred");
}

TEST_F(Tune, RefusesWhatItCannotGoOnFrom) {
  std::filesystem::copy(path("plan.h5"), path("tuned.h5"));
  const CommandResult result = run(tuning("--trials 4"), 4);
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output, HasSubstr("plan 'tuned.h5' was not tuned"));
}

}  // namespace
}  // namespace alpa
