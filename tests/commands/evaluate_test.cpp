// What a checkpoint is worth on some data, under any plan of its model.
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/commands/spoiled_files.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EvaluateCommand : public Workplace {
 protected:
  /// A run of four steps whose last evaluation is of the checkpoint.
  void train_and_evaluate(const std::string& plan, int ranks) const {
    train(plan, ranks, "run", "--steps 4 --checkpoint-every 2 --evaluate-every 4 --evaluation-batches 3");
  }

  CommandResult evaluate(const std::string& plan, int ranks, const std::string& options) const {
    return run("alpa-train evaluate " + plan + ".h5 " + options, ranks);
  }

  /// Of the newest checkpoint, on what the run evaluates on.
  nlohmann::json evaluated(const std::string& plan, int ranks) const {
    const CommandResult result = evaluate(
        plan, ranks, "--data synthetic:64 --held-out --batches 3 --run-dir run --force --json out.json");
    EXPECT_EQ(result.status, 0) << result.output;
    return json("out.json");
  }

  nlohmann::json json(const std::string& name) const {
    std::ifstream file(path(name));
    return nlohmann::json::parse(file);
  }

  nlohmann::json last_line_of_run() const {
    std::ifstream file(path("run") / "metrics.jsonl");
    std::string last;
    for (std::string line; std::getline(file, line);) last = line;
    return nlohmann::json::parse(last);
  }
};

TEST_F(EvaluateCommand, FindsWhatTheRunFoundToTheBitsAndUnderOtherPlansButForRounding) {
  make_mixed_plan("mixed");
  make_plan("serial", "--method serial");
  make_plan("data", "--method data-parallel --devices 2");
  train_and_evaluate("mixed", 4);
  const double of_run = last_line_of_run().at("evaluation_loss");
  EXPECT_EQ(evaluated("mixed", 4).at("loss"), of_run);
  // Sums of 3 x 8 x 16 losses in f32, in another order: some roundings of 2^-24 each, not one of 2^-20.
  EXPECT_NEAR(evaluated("serial", 1).at("loss"), of_run, of_run * 1e-6);
  EXPECT_NEAR(evaluated("data", 2).at("loss"), of_run, of_run * 1e-6);
  // Weights of two steps before are worth something else.
  const std::string of_earlier =
      "--data synthetic:64 --held-out --batches 3 --json earlier.json --checkpoint ";
  EXPECT_EQ(evaluate("serial", 1, of_earlier + checkpoint("run", 2).string()).status, 0);
  EXPECT_GT(std::abs(json("earlier.json").at("loss").get<double>() - of_run), of_run * 1e-4);
}

TEST_F(EvaluateCommand, ReportsTheMetricsOfTheModelAndNoPerplexityOfALossOfSeveralTerms) {
  make_plan("moe", "--method serial", ALPA_SOURCE_DIR "/tests/data/tiny_moe.toml");
  train_and_evaluate("moe", 1);
  const nlohmann::json found = evaluated("moe", 1), line = last_line_of_run();
  EXPECT_EQ(found.at("loss"), line.at("evaluation_loss"));
  EXPECT_EQ(found.at("metrics"), line.at("evaluation_metrics"));
  EXPECT_GT(found.at("metrics").at("dropped_choices"), 0);
  EXPECT_TRUE(found.at("perplexity").is_null());
}

TEST_F(EvaluateCommand, TakesAllOfTheDataInWholeBatchesAndCountsThem) {
  make_plan("serial", "--method serial");
  train("serial", 1, "run", "--steps 1");
  // (4000 - 1) / 16 = 249 windows, in batches of 8.
  const CommandResult all =
      evaluate("serial", 1, "--data synthetic:64:4000 --run-dir run --json run/all.json");
  ASSERT_EQ(all.status, 0) << all.output;
  EXPECT_THAT(all.output, AllOf(HasSubstr("248 in 31 batches, of 249 in 'synthetic:64:4000'"),
                                HasSubstr("step-00000001.h5', step 1")));
  const nlohmann::json found = json("run/all.json");
  EXPECT_EQ(found.at("part"), "all");
  EXPECT_EQ(found.at("step"), 1);
  EXPECT_EQ(found.at("batches"), 31);
  EXPECT_EQ(found.at("samples"), 248);
  EXPECT_EQ(found.at("samples_left_out"), 1);
  EXPECT_EQ(found.at("tokens"), 248 * 16);
  EXPECT_DOUBLE_EQ(found.at("perplexity"), std::exp(found.at("loss").get<double>()));
  EXPECT_GT(found.at("seconds"), 0);
  // Training leaves out 5 % of the windows: 12.
  const CommandResult held_out =
      evaluate("serial", 1, "--data synthetic:64:4000 --held-out --run-dir run --progress-s 0");
  EXPECT_THAT(held_out.output, HasSubstr("8 in 1 batch, of 12 held out of 'synthetic:64:4000'"));
}

TEST_F(EvaluateCommand, PassesOverADamagedCheckpointOfTheRun) {
  make_plan("serial", "--method serial");
  train("serial", 1, "run", "--steps 2 --checkpoint-every 1");
  cut_in_half(checkpoint("run", 2));
  const CommandResult result = evaluate("serial", 1, "--data synthetic:64 --batches 1 --run-dir run");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("passing over a checkpoint"), HasSubstr("step-00000001.h5', step 1")));
  const CommandResult by_name =
      evaluate("serial", 1, "--data synthetic:64 --batches 1 --checkpoint " + checkpoint("run", 2).string());
  EXPECT_EQ(by_name.status, 3);
  EXPECT_THAT(by_name.output, HasSubstr("truncated or damaged"));
}

TEST_F(EvaluateCommand, RefusesWhatItCannotEvaluate) {
  make_plan("serial", "--method serial");
  make_plan("moe", "--method serial", ALPA_SOURCE_DIR "/tests/data/tiny_moe.toml");
  train("serial", 1, "run", "--steps 1");
  const std::string of_run = "--run-dir run --data synthetic:64";
  const CommandResult neither = evaluate("serial", 1, "--data synthetic:64");
  EXPECT_EQ(neither.status, 2);
  EXPECT_THAT(neither.output, HasSubstr("neither --checkpoint nor --run-dir is given"));
  EXPECT_EQ(evaluate("serial", 1, of_run + " --checkpoint x.h5").status, 2);
  EXPECT_EQ(evaluate("serial", 1, of_run + " --device emulated").status, 2);

  const CommandResult nothing = evaluate("serial", 1, "--data synthetic:64 --run-dir nowhere");
  EXPECT_EQ(nothing.status, 3);
  EXPECT_THAT(nothing.output, HasSubstr("there is no checkpoint in 'nowhere/checkpoints'"));
  const CommandResult other_model = evaluate("moe", 1, of_run);
  EXPECT_EQ(other_model.status, 3);
  EXPECT_THAT(other_model.output,
              AllOf(HasSubstr("is a checkpoint of another model"), HasSubstr("states differ")));
  const CommandResult too_little = evaluate("serial", 1, "--run-dir run --data synthetic:64:40");
  EXPECT_EQ(too_little.status, 3);
  EXPECT_THAT(too_little.output, HasSubstr("a batch takes 8 samples, and 'synthetic:64:40' has 2 samples"));
  EXPECT_EQ(evaluate("serial", 2, of_run).status, 5);
}

TEST_F(EvaluateCommand, EndsBySignalWithTheNumbersOfWhatWasDone) {
  make_plan("data", "--method data-parallel --devices 2");
  train("data", 2, "run", "--steps 1");
  const std::string endless =
      "alpa-train evaluate data.h5 --data synthetic:64 --run-dir run --progress-s 0 --json "
      "out.json";
  RunningRanks ranks(path(""), endless, 2);
  wait_until("a batch is done", [&] { return ranks.log().find("so far") != std::string::npos; });
  ranks.signal(1, SIGTERM);
  ranks.wait();
  EXPECT_THAT(ranks.log(),
              AllOf(HasSubstr("stopped by a signal"), HasSubstr("perplexity"), Not(HasSubstr("error"))));
  EXPECT_TRUE(json("out.json").at("stopped_early"));
  EXPECT_GT(json("out.json").at("batches"), 0);
}

}  // namespace
}  // namespace alpa
