// A vocabulary that the devices cannot split evenly is padded where that makes a step faster, and so are
// heads. What is learned, and what files hold, is the same.
#include <gmock/gmock.h>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Padding : public Workplace {
 protected:
  void SetUp() override {
    write("odd.toml", model("odd", "adamw", 0));
    write("never.toml", model("never", "adamw", 1));
    write("odd_heads.toml", odd_heads("odd_heads", 0));
    write("whole_heads.toml", odd_heads("whole_heads", 1));
  }

  /// Of 15 heads: one more is for two devices to share.
  std::string odd_heads(const std::string& name, int pad_heads_to) const {
    return "base = \"" + tiny_gpt_ + "\"\nname = \"" + name +
           "\"\n[dimensions]\nmodel = 60\nheads = 15\nlayers = 1\n"
           "[training]\nbatch = 1\nseed = 2\noptimizer = \"adamw\"\npad_to = 1\npad_heads_to = " +
           std::to_string(pad_heads_to) + "\n";
  }

  /// Trained for six steps: whole in "whole"; in "parts" by two devices, and from the fourth on whole.
  void expect_equal_losses(const std::string& padded, const std::string& whole) const {
    planned(padded, "--devices 2");
    planned(whole, "--method serial --devices 1");
    train(whole, 1, "whole", "--steps 6");
    train(padded, 2, "parts", "--steps 4");
    train(whole, 1, "parts", "--steps 6 --resume must");
    const std::vector<double> wanted = numbers("whole", "loss"), found = numbers("parts", "loss");
    ASSERT_EQ(found.size(), 6u);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-5 * wanted[i]) << "step " << i + 1;
  }

  /// Most of its work is in its table; one sample, which data parallelism cannot split.
  std::string model(const std::string& name, const std::string& optimizer, int pad_to) const {
    return "base = \"" + tiny_gpt_ + "\"\nname = \"" + name +
           "\"\n[dimensions]\nvocabulary = 5003\nlayers = 1\n" +
           "[training]\nbatch = 1\nseed = 2\noptimizer = \"" + optimizer +
           "\"\npad_to = " + std::to_string(pad_to) + "\n";
  }

  std::string planned(const std::string& name, const std::string& options) const {
    const CommandResult result = run("alpa-plan " + name + ".toml --cluster " + cluster_ + " --out " + name +
                                     ".h5 --force " + options);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
};

TEST_F(Padding, IsChosenWhereItIsFaster) {
  EXPECT_THAT(planned("odd", "--devices 2"), HasSubstr("the vocabulary padded to a multiple of 2"));
  EXPECT_THAT(run("alpa-plan explain odd.h5 --full").output,
              AllOf(HasSubstr(", not padded"), HasSubstr("f32[5004x32]")));
  EXPECT_THAT(planned("never", "--devices 2"), Not(HasSubstr("padded")));
}

TEST_F(Padding, IsMeasuredToo) {
  const CommandResult profiled = run("alpa-profile odd.toml --out profile.h5 --micro-batch-samples 1", 2);
  EXPECT_EQ(profiled.status, 0) << profiled.output;
  const CommandResult result = run(
      "alpa-plan odd.toml --profile profile.h5 --micro-batches 1 --missing missing.txt --out odd.h5 --force");
  EXPECT_THAT(result.output, HasSubstr("padded to a multiple of 2"));
  EXPECT_EQ(std::filesystem::file_size(path("missing.txt")), 0u) << run("cat missing.txt").output;
}

TEST_F(Padding, ChangesNeitherLossesNorCheckpoints) {
  expect_equal_losses("odd", "never");
  EXPECT_THAT(run("h5ls -r " + checkpoint("parts", 4).string()).output,
              AllOf(HasSubstr("{5003, 32}"), Not(HasSubstr("{5004"))));
}

TEST_F(Padding, OfHeadsIsChosenWhereItIsFaster) {
  EXPECT_THAT(planned("odd_heads", "--devices 2"), HasSubstr("with heads padded to a multiple of 2"));
  EXPECT_THAT(run("alpa-plan explain odd_heads.h5 --full").output,
              AllOf(HasSubstr(", heads not padded"), HasSubstr("f32[60x16x4]")));
  EXPECT_THAT(planned("whole_heads", "--devices 2"), Not(HasSubstr("padded")));
}

// A sixteenth of the heads is 0 and stays so; what it adds to sums is 0, however they are grouped.
TEST_F(Padding, OfHeadsChangesNeitherLossesNorCheckpoints) {
  expect_equal_losses("odd_heads", "whole_heads");
  EXPECT_THAT(run("h5ls -r " + checkpoint("parts", 4).string()).output,
              AllOf(HasSubstr("{60, 15, 4}"), Not(HasSubstr("16, 4}"))));
}

TEST_F(Padding, IsRefusedForAnOptimizerThatWouldSeeIt) {
  write("adafactor.toml", model("adafactor", "adafactor", 8));
  const CommandResult result = run("alpa-plan adafactor.toml --cluster " + cluster_ + " --out plan.h5");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output, AllOf(HasSubstr("'embedding.table' is padded"), HasSubstr("pad_to = 1")));
  EXPECT_FALSE(std::filesystem::exists(path("plan.h5")));
}

}  // namespace
}  // namespace alpa
