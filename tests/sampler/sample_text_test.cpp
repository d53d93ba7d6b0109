#include "libalpa/sampler/sample_text.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/sampler/small_decoding.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tokens = std::vector<std::int32_t>;

class SampledTexts : public ::testing::TestWithParam<const char*> {
 protected:
  static SamplingReport sample(TrainedElsewhere& trained, const std::vector<Tokens>& prompts,
                               SamplingSettings settings, std::optional<std::int32_t> end_of_text = {},
                               const std::function<void(StopRequest&)>& on_token = {}) {
    settings.trained.checkpoint = trained.checkpoint();
    SamplingReport report;
    for_train_ranks(1, [&](const TrainRanks& ranks) {
      StopRequest stop;
      report = sample_texts(trained.plan(), trained.graph(), prompts, end_of_text, settings, ranks, stop,
                            trained.log(), [&](std::size_t, std::int32_t) {
                              if (on_token) on_token(stop);
                            });
    });
    return report;
  }

  /// The first tokens of a text of the reference.
  static Tokens beginning(const std::vector<std::int64_t>& tokens, std::size_t text, std::size_t count) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(text * 12);
    return Tokens(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
};

TEST_P(SampledTexts, AreTheGreedyContinuationOfPyTorchAtTemperature0) {
  TrainedElsewhere trained(GetParam());
  const std::vector<std::int64_t> tokens = trained.integers("tokens"), greedy = trained.integers("greedy");
  const SamplingReport report =
      sample(trained, {beginning(tokens, 0, 4), beginning(tokens, 1, 4)}, {.choice = {.temperature = 0}});
  ASSERT_EQ(greedy.size(), 2u * 12);
  for (std::size_t text = 0; text < 2; ++text) {
    Tokens whole = report.texts[text].prompt;
    whole.insert(whole.end(), report.texts[text].tokens.begin(), report.texts[text].tokens.end());
    ASSERT_EQ(whole.size(), 13u) << "the last place of a sequence scores one more";
    EXPECT_EQ(Tokens(whole.begin(), whole.end() - 1), beginning(greedy, text, 12));
    EXPECT_EQ(report.texts[text].end, TextEnd::full_sequence);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, SampledTexts, ::testing::Values("gpt2", "llama"));

class Sampling : public SampledTexts {
 protected:
  TrainedElsewhere trained_{"gpt2"};
};

TEST_F(Sampling, IsTheSameBesideOtherPrompts) {
  const Tokens first{1, 2, 3}, second{4, 5, 6, 7, 8};
  const SamplingSettings settings{.tokens = 6, .seed = 3};
  const SamplingReport both = sample(trained_, {first, second}, settings);
  const SamplingReport alone = sample(trained_, {first}, settings);
  EXPECT_EQ(both.texts[0].tokens, alone.texts[0].tokens);
  EXPECT_EQ(both.texts[0].tokens.size(), 6u);
  EXPECT_EQ(both.texts[1].end, TextEnd::as_asked);
  EXPECT_NE(sample(trained_, {first}, {.tokens = 6, .seed = 4}).texts[0].tokens, alone.texts[0].tokens);
}

TEST_F(Sampling, EndsWhereTheModelEndsTheText) {
  const SamplingSettings greedy{.tokens = 8, .choice = {.temperature = 0}};
  const Tokens all = sample(trained_, {{1, 2, 3}}, greedy).texts[0].tokens;
  const auto end = std::ranges::find(all, all[2]);
  const SamplingReport ended = sample(trained_, {{1, 2, 3}}, greedy, all[2]);
  EXPECT_EQ(ended.texts[0].tokens, Tokens(all.begin(), end)) << "without the token that ends it";
  EXPECT_EQ(ended.texts[0].end, TextEnd::end_of_text);
}

/// In training it saw nothing before.
TEST_F(Sampling, GoesOnAfterTheEndOfADocumentAsFromNothing) {
  const SamplingSettings greedy{.tokens = 4, .choice = {.temperature = 0}};
  const Tokens before{9, 4, 8, 5, 1, 2, 3}, alone{1, 2, 3};
  TrainedElsewhere apart("gpt2", 5);
  const SamplingReport report = sample(apart, {before, alone}, greedy);
  EXPECT_EQ(report.texts[0].tokens, report.texts[1].tokens);
  EXPECT_EQ(report.texts[1].tokens, sample(trained_, {alone}, greedy).texts[0].tokens);
  EXPECT_NE(report.texts[0].tokens, sample(trained_, {before}, greedy).texts[0].tokens);
}

TEST_F(Sampling, StopsBetweenTokensWithWhatThereIs) {
  const SamplingReport stopped = sample(trained_, {{1, 2, 3}, {4}}, {.tokens = 6, .at_once = 1}, {},
                                        [](StopRequest& stop) { stop.ask(); });
  ASSERT_EQ(stopped.texts.size(), 2u);
  EXPECT_EQ(stopped.texts[0].tokens.size(), 1u);
  EXPECT_EQ(stopped.texts[0].end, TextEnd::stopped);
  EXPECT_EQ(stopped.texts[1].tokens.size(), 0u) << "its turn has not come";
  EXPECT_EQ(stopped.texts[1].end, TextEnd::stopped);
}

TEST_F(Sampling, RefusesPromptsThatTheModelCannotTake) {
  const auto sampled = [&](const Tokens& prompt) {
    return [&, prompt] { sample(trained_, {{1}, prompt}, {}); };
  };
  EXPECT_THAT(sampled({}), ThrowsMessage<Error>(HasSubstr("prompt 2 is empty")));
  EXPECT_THAT(sampled(Tokens(13, 1)),
              ThrowsMessage<Error>(HasSubstr("prompt 2 has 13 tokens, and the model takes sequences of 12")));
  EXPECT_THAT(sampled({1, 64}),
              ThrowsMessage<Error>(
                  HasSubstr("prompt 2 has token 64, and the model's vocabulary has ids from 0 to 63")));
}

}  // namespace
}  // namespace alpa
