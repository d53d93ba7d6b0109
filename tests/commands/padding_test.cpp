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

  /// Of two devices, which are to pad, and say so.
  void expect_chosen(const std::string& name, const std::string& what, const std::string& beside,
                     const std::string& weight) const {
    EXPECT_THAT(planned(name, "--devices 2"), HasSubstr("planning again, with " + what));
    EXPECT_THAT(run("alpa-plan explain " + name + ".h5 --full").output,
                AllOf(HasSubstr(beside), HasSubstr(weight)));
  }

  /// As measured by two ranks, with no cost that had to be estimated.
  void expect_measured(const std::string& name, const std::string& what) const {
    const CommandResult profiled =
        run("alpa-profile " + name + ".toml --out " + name + ".profile.h5 --micro-batch-samples 1", 2);
    EXPECT_EQ(profiled.status, 0) << profiled.output;
    const CommandResult result =
        run("alpa-plan " + name + ".toml --profile " + name +
            ".profile.h5 --micro-batches 1 --missing missing.txt --out measured.h5 --force");
    EXPECT_THAT(result.output, HasSubstr(what));
    EXPECT_EQ(std::filesystem::file_size(path("missing.txt")), 0u) << run("cat missing.txt").output;
  }

  /// Trained for six steps: whole in "whole"; in "parts" by two devices, and from the fourth on whole. Files
  /// have weights of that shape.
  void expect_equal_training(const std::string& padded, const std::string& whole, const std::string& shape,
                             const std::string& padded_shape) const {
    planned(padded, "--devices 2");
    planned(whole, "--method serial --devices 1");
    train(whole, 1, "whole", "--steps 6");
    train(padded, 2, "parts", "--steps 4");
    train(whole, 1, "parts", "--steps 6 --resume must");
    const std::vector<double> wanted = numbers("whole", "loss"), found = numbers("parts", "loss");
    ASSERT_EQ(found.size(), 6u);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-5 * wanted[i]) << "step " << i + 1;
    EXPECT_THAT(run("h5ls -r " + checkpoint("parts", 4).string()).output,
                AllOf(HasSubstr(shape), Not(HasSubstr(padded_shape))));
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
  expect_chosen("odd", "the vocabulary padded to a multiple of 2", ", not padded", "f32[5004x32]");
  expect_chosen("odd_heads", "heads padded to a multiple of 2", ", heads not padded", "f32[60x16x4]");
  for (const char* name : {"never", "whole_heads"})
    EXPECT_THAT(planned(name, "--devices 2"), Not(HasSubstr("padded")));
}

TEST_F(Padding, IsMeasuredToo) {
  expect_measured("odd", "the vocabulary padded to a multiple of 2");
  expect_measured("odd_heads", "heads padded to a multiple of 2");
}

TEST_F(Padding, ChangesNeitherLossesNorCheckpoints) {
  expect_equal_training("odd", "never", "{5003, 32}", "{5004");
}

// A sixteenth of the heads is 0 and stays so; what it adds to sums is 0, however they are grouped.
TEST_F(Padding, OfHeadsChangesNeitherLossesNorCheckpoints) {
  expect_equal_training("odd_heads", "whole_heads", "{60, 15, 4}", "16, 4}");
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
