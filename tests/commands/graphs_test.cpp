// Models over graphs that come with the data, from a file of trees to a trained model.
#include <gmock/gmock.h>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Graphs : public Workplace {
 protected:
  void SetUp() override { write("trees.toml", model(56)); }

  /// A small Tree-LSTM with room for so many vertices of each sample.
  static std::string model(int vertices) {
    return "base = \"" ALPA_SOURCE_DIR
           "/configs/models/tree-lstm.toml\"\nname = \"trees\"\n[graphs]\nvocabulary = \"vocabulary\"\n"
           "classes = \"classes\"\nchildren = \"children\"\nvertices = " +
           std::to_string(vertices) +
           "\n[dimensions]\nembedding = 24\nhidden = 24\n[training]\nbatch = 64\nlearning_rate = 1e-2\n"
           "warmup_steps = 5\nsteps = 600\n";
  }

  void make_trees() const {
    const CommandResult made = run("alpa-train convert synthetic-trees:4000 --order kept --out trees.h5");
    ASSERT_EQ(made.status, 0) << made.output;
  }
};

// What is planted in the labels is more than that most of them are alike (the third of five, 69 %).
TEST_F(Graphs, AreLearntOnTwoRanksFromAFileOfTrees) {
  make_trees();
  make_plan("plan", "--devices 2 --method data-parallel", "trees.toml");
  const CommandResult trained =
      run("alpa-train plan.h5 --data trees.h5 --run-dir run --threads 1 --evaluate-every 600", 2);
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::size_t logged = trained.output.find("step 600: held-out loss ");
  ASSERT_NE(logged, std::string::npos) << trained.output;
  EXPECT_GT(std::stod(trained.output.substr(trained.output.find("accuracy ", logged) + 9)), 0.75)
      << trained.output;
}

TEST_F(Graphs, GoOnWithTheBitsOfTheUninterruptedRun) {
  make_plan("plan", "--devices 2 --method zero-2", "trees.toml");
  const std::string training = "alpa-train plan.h5 --data synthetic-trees:300 --threads 1 --run-dir ";
  for (const char* part : {"whole --steps 8", "halves --steps 4", "halves --steps 8 --resume must"}) {
    const CommandResult trained = run(training + part, 2);
    ASSERT_EQ(trained.status, 0) << trained.output;
  }
  EXPECT_EQ(difference(checkpoint("whole", 8), checkpoint("halves", 8)), "");
  EXPECT_EQ(numbers("whole", "loss"), numbers("halves", "loss"));
}

// In whatever rounds vertices are computed, each row is computed alike; sums over rows come in another order.
TEST_F(Graphs, HaveTheSameLossesUnderEveryPolicy) {
  make_plan("plan", "--method serial", "trees.toml");
  std::vector<std::vector<double>> losses;
  for (const std::string policy : {"frontier", "agenda", "per-sample", "serial"}) {
    const CommandResult trained =
        run("alpa-train plan.h5 --data synthetic-trees:300 --threads 1 --steps 4 --run-dir " + policy +
            " --batching " + policy);
    ASSERT_EQ(trained.status, 0) << trained.output;
    losses.push_back(numbers(policy, "loss"));
  }
  EXPECT_EQ(losses[1], losses[0]);  // one vertex function: DyNet's agenda takes what Cavs's frontier has
  for (const std::vector<double>& each : losses)
    EXPECT_THAT(each, testing::Pointwise(testing::DoubleNear(1e-5), losses[0]));
}

// What is added has no label, and comes after all that has.
TEST_F(Graphs, ThatAreChainsHaveTheSameLossesPadded) {
  std::string text = model(56);
  text.replace(text.find("tree-lstm.toml"), std::string("tree-lstm.toml").size(), "var-lstm.toml");
  write("chains.toml", text);
  make_plan("plan", "--method serial", "chains.toml");
  for (const std::string policy : {"frontier", "padded"}) {
    const CommandResult trained =
        run("alpa-train plan.h5 --data chains:300 --threads 1 --steps 4 --run-dir " + policy +
            " --batching " + policy);
    ASSERT_EQ(trained.status, 0) << trained.output;
  }
  EXPECT_THAT(numbers("padded", "loss"),
              testing::Pointwise(testing::DoubleNear(1e-5), numbers("frontier", "loss")));
}

TEST_F(Graphs, ArePlannedForWithTheFastestPolicyForTheirSizes) {
  make_trees();
  const auto planned = [&](const std::string& options) {
    return run("alpa-plan trees.toml --cluster " + cluster_ + " --method serial --force --out data.h5 " +
               options);
  };
  const CommandResult chosen = planned("--data trees.h5");
  ASSERT_EQ(chosen.status, 0) << chosen.output;
  EXPECT_THAT(chosen.output,
              testing::ContainsRegex("a group of 32 samples: frontier .* rounds, agenda .* rounds"));
  EXPECT_THAT(chosen.output,
              testing::ContainsRegex("\nthe vertices of 32 samples together, by [a-z]+, in [0-9]+ rounds\n"));
  const CommandResult trained = run("alpa-train data.h5 --data trees.h5 --run-dir run --threads 1 --steps 2");
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr(", of 32 samples together by "));

  write("trees.toml", model(20));
  const CommandResult small = planned("--data trees.h5");
  EXPECT_EQ(small.status, 3) << small.output;
  EXPECT_THAT(small.output, AllOf(HasSubstr("vertices on average, and 'trees' has room for 640"),
                                  HasSubstr("try: [graphs] vertices = ")));
  EXPECT_EQ(run("alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --data trees.h5 --out gpt.h5").status,
            2);
}

// Without 'vertices' there is room for the largest trees together, so whatever order they come in.
TEST_F(Graphs, HaveTheRoomThatTheirLargestTakeWhereTheModelDoesNotSay) {
  make_trees();
  std::string text = model(56);
  text.erase(text.find("vertices = 56"), std::string("vertices = 56").size());
  write("trees.toml", text);
  const std::string plan = "alpa-plan trees.toml --cluster " + cluster_ + " --method serial --out data.h5";
  const CommandResult unknown = run(plan);
  EXPECT_EQ(unknown.status, 3) << unknown.output;
  EXPECT_THAT(unknown.output, AllOf(HasSubstr("'vertices' is missing in [graphs] of 'trees'"),
                                    HasSubstr("--data for as many as the largest")));
  const CommandResult planned = run(plan + " --data trees.h5");
  ASSERT_EQ(planned.status, 0) << planned.output;
  EXPECT_THAT(planned.output, testing::ContainsRegex("room for [0-9]+ vertices of each sample"));
  const CommandResult trained =
      run("alpa-train data.h5 --data trees.h5 --run-dir run --threads 1 --steps 1000000000 --dry-run");
  EXPECT_EQ(trained.status, 0) << trained.output;
}

TEST_F(Graphs, HaveTheLossesOfTheirStepsSortedOrNot) {
  make_plan("drawn", "--method serial", "trees.toml");
  std::string text = model(80);
  text.insert(text.find("vertices = "), "sort = \"height\"\n");
  write("trees.toml", text);
  make_plan("sorted", "--devices 2 --method data-parallel --micro-batches 1", "trees.toml");
  const std::string training = "--data synthetic-trees:300 --threads 1 --steps 4 --run-dir ";
  ASSERT_EQ(run("alpa-train drawn.h5 " + training + "drawn").status, 0);
  const CommandResult sorted = run("alpa-train sorted.h5 " + training + "sorted", 2);
  ASSERT_EQ(sorted.status, 0) << sorted.output;
  EXPECT_THAT(numbers("sorted", "loss"),
              testing::Pointwise(testing::DoubleNear(1e-5), numbers("drawn", "loss")));
}

TEST_F(Graphs, ThatDoNotFitAreRefusedBeforeTheFirstStep) {
  write("small.toml", model(40));
  make_plan("plan", "--method serial", "small.toml");
  const CommandResult refused =
      run("alpa-train plan.h5 --data synthetic-trees:300 --run-dir run --threads 1 --dry-run");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("32 samples that come together in this run have "),
                                    HasSubstr("try: [graphs] vertices = ")));
  EXPECT_TRUE(names_in(".").size() > 0 && !std::filesystem::exists(path("run")));
}

}  // namespace
}  // namespace alpa
