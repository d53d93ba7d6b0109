// A run that was interrupted and resumed is the run that was not: bit for bit under the same plan, within
// what the order of sums allows under another.
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "libalpa/base/bfloat16.h"
#include "libalpa/h5/tensor_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class Resume : public Workplace {
 protected:
  void SetUp() override {
    write("bf16.toml",
          "base = \"" + tiny_gpt_ + "\"\nname = \"tiny_bf16\"\n[training]\nprecision = \"bf16\"\n");
  }

  void expect_same_after_ten_steps(const std::string& plan, int ranks) {
    train(plan, ranks, "whole", "--steps 10");
    train(plan, ranks, "halves", "--steps 5");
    train(plan, ranks, "halves", "--steps 10 --resume must");
    EXPECT_EQ(difference(checkpoint("whole", 10), checkpoint("halves", 10)), "");
    EXPECT_EQ(numbers("whole", "loss"), numbers("halves", "loss"));
    EXPECT_EQ(numbers("whole", "gradient_norm"), numbers("halves", "gradient_norm"));
    EXPECT_EQ(texts("whole", "samples_hash"), texts("halves", "samples_hash"));
    EXPECT_NE(difference(checkpoint("halves", 5), checkpoint("halves", 10)), "");
  }
};

TEST_F(Resume, IsBitForBitTheSerialRun) {
  make_plan("serial", "--method serial");
  expect_same_after_ten_steps("serial", 1);
}

TEST_F(Resume, IsBitForBitTheSerialRunInBf16) {
  make_plan("serial", "--method serial", "bf16.toml");
  expect_same_after_ten_steps("serial", 1);
}

TEST_F(Resume, IsBitForBitTheMixedRunOnFourRanks) {
  make_mixed_plan("mixed");
  expect_same_after_ten_steps("mixed", 4);
}

TEST_F(Resume, IsBitForBitTheMixedRunOnFourRanksInBf16) {
  make_mixed_plan("mixed", "bf16.toml");
  expect_same_after_ten_steps("mixed", 4);
}

// Of these steps some are clipped and some are not; five of them go on under the other plan.
TEST_F(Resume, IsBitForBitTheSameWhetherUpdatesWaitForTheNormOrNot) {
  write("clipped.toml",
        "base = \"" + tiny_gpt_ + "\"\nname = \"tiny_clipped\"\n[training]\ngradient_clip = 1.3\n");
  for (const std::string updates : {"after-norm", "before-norm"})
    make_plan(updates,
              "--devices 2 --method inter-only --micro-batches 4 --schedule 1f1b --updates " + updates,
              "clipped.toml");
  train("after-norm", 2, "after", "--steps 10");
  train("before-norm", 2, "before", "--steps 10");
  train("before-norm", 2, "both", "--steps 5");
  train("after-norm", 2, "both", "--steps 10 --resume must");
  for (const std::string other : {"before", "both"}) {
    EXPECT_EQ(difference(checkpoint("after", 10), checkpoint(other, 10)), "") << other;
    EXPECT_EQ(numbers("after", "loss"), numbers(other, "loss"));
    EXPECT_EQ(numbers("after", "gradient_norm"), numbers(other, "gradient_norm"));
  }
  // How many so far, from the first on.
  const std::string counts = run("grep -o '\"corrected_steps\":[0-9]*' before/metrics.jsonl").output;
  EXPECT_THAT(counts, HasSubstr("\"corrected_steps\":1\n"));
  EXPECT_THAT(counts, Not(HasSubstr("\"corrected_steps\":10\n")));
  EXPECT_EQ(run("grep corrected_steps after/metrics.jsonl").output, "");
}

// Evaluations and checkpoints fall on steps whose updates the next one would have made.
TEST_F(Resume, IsBitForBitTheSameWhereverUpdatesAreMade) {
  const std::string model = ALPA_SOURCE_DIR "/tests/data/tiny_unclipped.toml";
  for (const std::string updates : {"after-norm", "next-forward"})
    make_plan(updates, "--devices 2 --method data-parallel --overlap all --updates " + updates, model);
  EXPECT_THAT(run("alpa-plan explain next-forward.h5").output, HasSubstr("updates next-forward"));
  const std::string often = " --checkpoint-every 4 --keep 0 --evaluate-every 3";
  train("after-norm", 2, "after", "--steps 10" + often);
  train("next-forward", 2, "next", "--steps 10" + often);
  train("next-forward", 2, "both", "--steps 5" + often);
  train("after-norm", 2, "both", "--steps 10 --resume must" + often);
  for (const std::string other : {"next", "both"}) {
    for (const int step : {4, 8, 10})
      EXPECT_EQ(difference(checkpoint("after", step), checkpoint(other, step)), "") << other << " " << step;
    for (const std::string number : {"step", "loss", "gradient_norm"})
      EXPECT_EQ(numbers("after", number), numbers(other, number)) << other << " " << number;
    const std::string evaluations = "grep -o '\"evaluation_loss\":[0-9].*' ";
    EXPECT_EQ(run(evaluations + "after/metrics.jsonl | cut -d, -f1 | sort -u").output,
              run(evaluations + other + "/metrics.jsonl | cut -d, -f1 | sort -u").output);
  }
}

// Whoever has a row of the optimizer's states writes it, and reads it.
TEST_F(Resume, IsBitForBitTheSameWhoeverUpdatesWhat) {
  const std::string model = ALPA_SOURCE_DIR "/tests/data/tiny_unclipped.toml";
  for (const std::string owners : {"none", "first", "uneven"})
    make_plan(owners, "--devices 4 --method data-parallel --micro-batches 1 --owners " + owners, model);
  EXPECT_THAT(run("alpa-plan explain uneven.h5 --full").output, HasSubstr("which update it for all"));
  train("none", 4, "all", "--steps 10");
  train("uneven", 4, "whole", "--steps 10");
  train("uneven", 4, "parts", "--steps 3");
  train("none", 4, "parts", "--steps 6 --resume must");
  train("first", 4, "parts", "--steps 10 --resume must");
  for (const std::string other : {"whole", "parts"}) {
    EXPECT_EQ(difference(checkpoint("all", 10), checkpoint(other, 10)), "") << other;
    EXPECT_EQ(numbers("all", "loss"), numbers(other, "loss")) << other;
  }
}

TEST_F(Resume, IsBitForBitTheMixedRunOnFourRanksWithAdafactor) {
  make_mixed_plan("mixed", ALPA_SOURCE_DIR "/tests/data/tiny_adafactor.toml");
  expect_same_after_ten_steps("mixed", 4);
}

/// Where bytes count, so that devices send factors and hold their errors in terms.
constexpr const char* kSlowNetwork = R"(name = "slow"
device = "CPU, 1 thread"
nodes = 1
devices_per_node = 4
memory_gib = 2
f32_tflops = 10
bf16_tflops = 10
memory_gb_per_s = 100
launch_us = 0
within_node = { latency_us = 0, gb_per_s = 0.001 }
)";

TEST_F(Resume, HasTheErrorsOfCompressedGradientsOfEachRankAndSumsThemUpUnderAnotherPlan) {
  write("slow.toml", kSlowNetwork);
  for (const auto& [ranks, method] : {std::pair(4, "data-parallel"), {2, "data-parallel"}, {1, "serial"}}) {
    const CommandResult made =
        run("alpa-plan " ALPA_SOURCE_DIR "/tests/data/tiny_powersgd.toml --cluster slow.toml --method " +
            std::string(method) + " --devices " + std::to_string(ranks) + " --out on" +
            std::to_string(ranks) + ".h5");
    ASSERT_EQ(made.status, 0) << made.output;
  }
  expect_same_after_ten_steps("on4", 4);
  const TensorReader saved(checkpoint("halves", 10), "alpa-checkpoint", "1.0");
  EXPECT_EQ(saved.tensors().at("block.0.mlp.up.error").shape, (Shape{4, 32, 128}));
  train("on1", 1, "serial", "--steps 12");
  EXPECT_THAT(run(training("on2", "halves", "--steps 11 --resume must"), 2).output,
              HasSubstr(" states: summed up, the checkpoint has other terms"));
  train("on1", 1, "halves", "--steps 12 --resume must");
  const std::vector<double> wanted = numbers("serial", "loss"), found = numbers("halves", "loss");
  ASSERT_EQ(found.size(), 12u);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * wanted[i]) << "step " << i + 1;
}

std::vector<double> values_of(const TensorReader& file, const std::string& name) {
  const TensorType type = file.tensors().at(name);
  EXPECT_EQ(type.dtype, DType::f32);
  std::vector<float> values(static_cast<std::size_t>(element_count(type.shape)));
  file.read(name, {Shape(type.shape.size(), 0), type.shape}, values.data());
  return {values.begin(), values.end()};
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

/// A bias of the keys moves all scores of a query alike, which softmax does not see: its gradient is zero but
/// for rounding, and AdamW makes steps of full length of that.
bool has_zero_gradient(const std::string& tensor) { return tensor.find("key_bias") != std::string::npos; }

void expect_near(const std::filesystem::path& a, const std::filesystem::path& b) {
  const TensorReader first(a, "alpa-checkpoint", "1.0"), second(b, "alpa-checkpoint", "1.0");
  ASSERT_GT(first.tensors().size(), 100u);
  ASSERT_EQ(first.tensors(), second.tensors());
  for (const auto& [name, type] : first.tensors()) {
    if (has_zero_gradient(name)) continue;
    const std::vector<double> wanted = values_of(first, name);
    std::vector<double> difference = values_of(second, name);
    for (std::size_t i = 0; i < wanted.size(); ++i) difference[i] -= wanted[i];
    EXPECT_LE(norm(difference), 1e-4 * norm(wanted)) << name;
  }
}

TEST_F(Resume, OnOtherPlansAndRankCountsGoesOnLikeTheSerialRun) {
  // AdamW as the models have it (epsilon 1e-8). An element whose gradient is as small as its rounding makes
  // steps of full length and of either sign: weights of seed 1 have one, which is up to 9e-5 of the norm of
  // its tensor apart (block.0.mlp.down). With those of seed 2 tensors stay within 2e-6.
  write("seed.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"seed_2\"\n[training]\nseed = 2\n");
  make_plan("serial", "--method serial", "seed.toml");
  make_mixed_plan("mixed", "seed.toml");
  make_plan("zero", "--method zero-2 --devices 2", "seed.toml");
  make_plan("data", "--method data-parallel --devices 2", "seed.toml");
  train("serial", 1, "whole", "--steps 12");
  train("mixed", 4, "parts", "--steps 5");
  train("zero", 2, "parts", "--steps 8 --resume must");
  train("data", 2, "parts", "--steps 10 --resume must");
  train("serial", 1, "parts", "--steps 12 --resume must");
  const std::vector<double> wanted = numbers("whole", "loss"), found = numbers("parts", "loss");
  ASSERT_EQ(wanted.size(), 12u);
  ASSERT_EQ(found.size(), 12u);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * wanted[i]) << "step " << i + 1;
  EXPECT_LT(wanted.back(), wanted.front());
  EXPECT_EQ(texts("whole", "samples_hash"), texts("parts", "samples_hash"));
  expect_near(checkpoint("whole", 12), checkpoint("parts", 12));
}

TEST_F(Resume, WithAnotherBatchSizeGoesOnWithTheNextSample) {
  write("small.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"small_batch\"\n[training]\nbatch = 4\n");
  make_plan("eight", "--method serial");
  make_plan("four", "--method serial", "small.toml");
  train("four", 1, "whole", "--steps 8");
  train("eight", 1, "parts", "--steps 3");
  train("four", 1, "parts", "--steps 5 --resume must");  // samples 24 to 27, 28 to 31
  const std::vector<std::string> wanted = texts("whole", "samples_hash"),
                                 found = texts("parts", "samples_hash");
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[3], wanted[6]);
  EXPECT_EQ(found[4], wanted[7]);
}

TEST_F(Resume, KeepsTheLastCheckpointsAlone) {
  make_plan("serial", "--method serial");
  train("serial", 1, "run", "--steps 12 --checkpoint-every 1 --keep 3");
  EXPECT_THAT(names_in("run/checkpoints"),
              ElementsAre("step-00000010.h5", "step-00000011.h5", "step-00000012.h5"));
}

/// Lines of a log that hold a text.
std::vector<std::string> lines_with(const std::string& text, const std::string& log) {
  std::vector<std::string> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find(text) != std::string::npos) found.push_back(line);
  return found;
}

TEST_F(Resume, LogsWhatEachSaveTakesAndEachWarningOnce) {
  make_plan("data", "--method data-parallel --devices 2");
  const CommandResult begun =
      run(training("data", "run", "--steps 4 --checkpoint-every 2 --progress-s 60"), 2);
  const std::vector<std::string> steps = lines_with("step ", begun.output);
  ASSERT_THAT(steps, SizeIs(4)) << begun.output;
  EXPECT_THAT(steps[0], AllOf(HasSubstr("step 2/4"), HasSubstr("  copied in ")));
  const std::string took = R"([0-9.]+ [KM]iB in [0-9.]+ m?s, [0-9.]+ [kMG]B/s)";
  EXPECT_THAT(steps[1], ContainsRegex(R"(the checkpoint of step 2 was saved by step [0-9]: )" + took));
  EXPECT_THAT(steps[2], AllOf(HasSubstr("step 4/4"), ContainsRegex("  saved " + took)));
  EXPECT_THAT(steps[3], HasSubstr("step time: predicted "));
  const CommandResult again = run(training("data", "run", "--steps 1 --evaluate-every 1"), 2);
  EXPECT_THAT(lines_with("nothing is left to do", again.output), SizeIs(1)) << again.output;
}

TEST_F(Resume, LogsWhatItResumesFrom) {
  make_plan("serial", "--method serial");
  const std::string command = training("serial", "run", "--steps 1");
  EXPECT_THAT(run(command).output, HasSubstr("starting afresh: no checkpoint in"));
  EXPECT_THAT(run(command).output, HasSubstr("resuming from step 1"));
  EXPECT_THAT(run(command + " --resume never").output, HasSubstr("starting afresh (--resume never)"));
}

TEST_F(Resume, RefusesOtherDataAnotherSplitAndAnotherOrderUnlessAccepted) {
  make_plan("data", "--method data-parallel --devices 2");
  write("seed.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"seed_2\"\n[training]\nseed = 2\n");
  make_plan("seed", "--method data-parallel --devices 2", "seed.toml");
  train("data", 2, "run", "--steps 2");
  const auto resumed = [&](const std::string& plan, const std::string& options) {
    return run("alpa-train " + plan + ".h5 --run-dir run --steps 3 --dry-run " + options, 2);
  };
  const std::string same = "--data synthetic:64";
  EXPECT_EQ(resumed("data", same).status, 0);
  const auto expect_refusal = [&](const CommandResult& result, const std::string& what) {
    EXPECT_EQ(result.status, 3);
    EXPECT_THAT(lines_with("error: ", result.output), SizeIs(1)) << result.output;
    EXPECT_THAT(lines_with("  " + what + ": ", result.output), SizeIs(1)) << result.output;
  };
  expect_refusal(resumed("data", "--data synthetic:63"), "data");  // of the same length
  expect_refusal(resumed("data", same + " --evaluation-data synthetic:64:5000"), "split");
  expect_refusal(resumed("seed", same), "order");
  const CommandResult accepted = resumed("seed", "--data synthetic:63 --accept-changed-data");
  EXPECT_EQ(accepted.status, 0) << accepted.output;
  EXPECT_THAT(lines_with("warning: --accept-changed-data: the run goes on with sample 16, ", accepted.output),
              SizeIs(1));
}

TEST_F(Resume, WarnsOfARunThatIsDone) {
  make_plan("serial", "--method serial");
  train("serial", 1, "run", "--steps 2");
  EXPECT_THAT(run(training("serial", "run", "--steps 1")).output,
              HasSubstr("nothing is left to do: the run has 2 steps of 1 (--steps)"));
}

}  // namespace
}  // namespace alpa
