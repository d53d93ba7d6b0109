// Text from a trained model.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "libalpa/h5/file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Of the weights of tests/reference/weights.py, whose 64 words are taken for bytes.
class SampleCommand : public Workplace {
 protected:
  void SetUp() override {
    const std::string weights = ALPA_SOURCE_DIR "/tests/reference/gpt2.safetensors";
    ASSERT_EQ(run("alpa-train import " + weights + " " + model_ + " --out gpt2.h5").status, 0);
  }

  CommandResult sample(const std::string& plan, int ranks, const std::string& options) const {
    return run("alpa-train sample " + plan + ".h5 --checkpoint gpt2.h5 " + options, ranks);
  }

  std::string content(const std::string& file) const {
    std::ifstream stream(path(file), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const std::string model_ = ALPA_SOURCE_DIR "/tests/data/small_gpt2.toml";
};

// Each prompt has the first four tokens of a sample there, and PyTorch's greedy continuation is known up to
// the 12th.
TEST_F(SampleCommand, IsTheGreedyContinuationOfPyTorchUnderEveryPlan) {
  const H5Reader reference(ALPA_SOURCE_DIR "/tests/reference/logits.h5", "alpa-reference", "1.0");
  const std::vector<std::int64_t> greedy = reference.int64s("/gpt2/greedy");
  std::ofstream prompts(path("prompts"), std::ios::binary);
  std::string expected[2];
  for (std::size_t text = 0; text < 2; ++text) {
    for (std::size_t i = 0; i < 4; ++i) prompts << static_cast<char>(greedy[text * 12 + i]);
    prompts << '\n';
    for (std::size_t i = 4; i < 12; ++i)
      expected[text] += (i == 4 ? "" : ",") + std::to_string(greedy[text * 12 + i]);
  }
  prompts.close();
  make_plan("serial", "--method serial", model_);
  make_plan("data", "--method data-parallel --devices 2", model_);
  make_plan("tensor", "--method tensor --devices 2", model_);
  make_plan("pipeline", "--method inter-only --devices 2", model_);
  for (const auto& [plan, ranks] : {std::pair("serial", 1), {"data", 2}, {"tensor", 2}, {"pipeline", 2}}) {
    const CommandResult result =
        sample(plan, ranks,
               std::string("--tokenizer bytes --prompts prompts --tokens 8 --temperature 0 --json ") + plan +
                   ".json");
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_THAT(content(std::string(plan) + ".json"), AllOf(HasSubstr("\"tokens\":[" + expected[0] + "]"),
                                                            HasSubstr("\"tokens\":[" + expected[1] + "]")))
        << plan;
  }
}

// Fewer texts than ranks that share samples out, and a number that they do not divide.
TEST_F(SampleCommand, ATextDependsOnNothingBesideIt) {
  make_plan("serial", "--method serial", model_);
  make_plan("data", "--method data-parallel --devices 2", model_);
  const std::string options = "--tokenizer bytes --seed 5 --top-p 0.9 --tokens 5 --log-level warning ";
  const std::string three = "--prompt 012345 --prompt 7 --prompt '+,-'";
  const CommandResult alone = sample("serial", 1, options + three + " --at-once 1");
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_EQ(sample("serial", 1, options + three).output, alone.output);
  EXPECT_EQ(sample("data", 2, options + three + " --at-once 3").output, alone.output);
  const std::string first = sample("data", 2, options + "--prompt 012345").output;
  EXPECT_EQ(alone.output.substr(0, first.size() + 6), "=== 1\n" + first);
}

TEST_F(SampleCommand, PrintsTheTextAndSaysWhyItEnds) {
  make_plan("serial", "--method serial", model_);
  const CommandResult result =
      sample("serial", 1, "--tokenizer bytes --prompt '0123' --top-k 1 --log-level warning");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output.substr(0, 4), "0123");
  const CommandResult dashes =
      sample("serial", 1, "--tokenizer bytes --prompt=--12 --prompt '-- 3' --tokens 1 --log-level warning");
  EXPECT_THAT(dashes.output, AllOf(HasSubstr("=== 1\n--12"), HasSubstr("=== 2\n-- 3"))) << "no option";
  EXPECT_EQ(result.output.size(), 4u + 9 + 1)
      << "12 places, of which the last scores one more, and a line break";
  EXPECT_THAT(sample("serial", 1, "--tokenizer bytes --prompt '0123'").output,
              HasSubstr("1 text has as many tokens as its sequence of 12 takes"));
}

TEST_F(SampleCommand, RefusesWhatItCannotContinue) {
  make_plan("serial", "--method serial", model_);
  EXPECT_THAT(sample("serial", 1, "--prompt '0'").output,
              HasSubstr("--tokenizer is not given, and the model's 64 words are no bytes"));
  const CommandResult unknown = sample("serial", 1, "--tokenizer bytes --prompt 'a'");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.output,
              HasSubstr("prompt 1 has token 97, and the model's vocabulary has ids from 0 to 63"));
  make_plan("bert", "--method serial", ALPA_SOURCE_DIR "/tests/data/small_bert.toml");
  const CommandResult bert = sample("bert", 1, "--tokenizer bytes --prompt '0'");
  EXPECT_EQ(bert.status, 3);
  EXPECT_THAT(
      bert.output,
      HasSubstr(
          "text cannot be sampled from this model: 'attention' of layer 'block.0' sees what comes later"));
}

}  // namespace
}  // namespace alpa
