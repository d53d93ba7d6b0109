#include "libalpa/trainer/token_batches.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/trainer/own_samples.h"

namespace alpa {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::ThrowsMessage;

/// Token i is i modulo `period`.
class Count final : public TokenSource {
 public:
  explicit Count(std::int64_t size, std::int32_t period = INT32_MAX) : size_(size), period_(period) {}
  std::int64_t size() const override { return size_; }
  void read(std::int64_t first, std::span<std::int32_t> into) const override {
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] = static_cast<std::int32_t>((first + static_cast<std::int64_t>(i)) % period_);
  }
  std::string description() const override { return "0, 1, 2 ..."; }

 private:
  std::int64_t size_;
  std::int32_t period_;
};

TrainingOptions options(Objective objective, std::int64_t sequence) {
  TrainingOptions o;
  o.objective = objective;
  o.sequence = sequence;
  return o;
}

struct Batch {
  std::vector<std::int32_t> tokens, targets;
  bool operator==(const Batch&) const = default;
};

Batch batch(TokenBatches& reader, std::int64_t first, std::int64_t samples, Split split = Split::training) {
  const auto size = static_cast<std::size_t>(samples * reader.order().sequence());
  Batch result{std::vector<std::int32_t>(size), std::vector<std::int32_t>(size)};
  const std::span<std::byte> into[] = {std::as_writable_bytes(std::span(result.tokens)),
                                       std::as_writable_bytes(std::span(result.targets))};
  const std::int64_t row_bytes = reader.order().sequence() * 4;
  reader.fill(split, first, whole_batch(samples, {row_bytes, row_bytes}), into);
  return result;
}

TEST(TokenBatches, NextTokenTargetsAreTheTokensAfter) {
  const Count source(1001);
  const auto o = options(Objective::next_token, 10);
  const SampleOrder order(source.size(), o);
  TokenBatches reader(source, order, o, 1001);
  const Batch read = batch(reader, 5, 3);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t p = 0; p < 10; ++p) {
      const auto at = static_cast<std::size_t>(i * 10 + p);
      EXPECT_EQ(read.tokens[at], order.window_start(Split::training, 5 + i) + p);
      EXPECT_EQ(read.targets[at], read.tokens[at] + 1);
    }
  EXPECT_EQ(reader.target_count(Split::training, 5, 3), 30);
  EXPECT_EQ(batch(reader, 0, 1, Split::held_out).tokens[0], order.window_start(Split::held_out, 0));
}

TEST(TokenBatches, AMicroBatchHoldsTheSamplesOfItsPartOfTheBatch) {
  const Count source(100'001, 99);
  for (const Objective objective : {Objective::next_token, Objective::masked}) {
    const auto o = options(objective, 20);
    TokenBatches reader(source, SampleOrder(source.size(), o), o, 100);
    const Batch whole = batch(reader, 40, 4), first = batch(reader, 40, 2), second = batch(reader, 42, 2);
    Batch joined = first;
    joined.tokens.insert(joined.tokens.end(), second.tokens.begin(), second.tokens.end());
    joined.targets.insert(joined.targets.end(), second.targets.begin(), second.targets.end());
    EXPECT_EQ(joined, whole);
  }
}

TEST(TokenBatches, OfARankAreItsPartOfTheWhole) {
  const Count source(100'001, 99);
  const std::vector<StepSamples> of_ranks{
      {{3, 4, 0, 4, 80}, {3, 4, 0, 4, 80}}, {{3, 4, 2, 2, 80}, {3, 4, 2, 2, 80}},
      {{3, 4, 0, 2, 80}, {3, 4, 3, 1, 80}}, {{3, 4, 1, 3, 80}, {3, 4, 0, 0, 80}},
      {{3, 4, 0, 0, 80}, {3, 4, 2, 1, 80}}, {{3, 4, 0, 0, 80}, {3, 4, 0, 0, 80}}};
  for (const Objective objective : {Objective::next_token, Objective::masked}) {
    const auto o = options(objective, 20);
    TokenBatches reader(source, SampleOrder(source.size(), o), o, 100);
    const Batch whole = batch(reader, 40, 12);
    const std::span<const std::byte> spans[] = {std::as_bytes(std::span(whole.tokens)),
                                                std::as_bytes(std::span(whole.targets))};
    for (const StepSamples& samples : of_ranks) {
      std::vector<std::byte> tokens(static_cast<std::size_t>(samples[0].bytes())),
          targets(static_cast<std::size_t>(samples[1].bytes()));
      const std::span<std::byte> into[] = {tokens, targets};
      reader.fill(Split::training, 40, samples, into);
      const OwnSamples own(samples, spans);
      EXPECT_THAT(tokens, testing::ElementsAreArray(own.spans()[0]));
      EXPECT_THAT(targets, testing::ElementsAreArray(own.spans()[1]));
    }
  }
}

TEST(TokenBatches, ReadTheSamplesOfARankAlone) {
  class Watched final : public TokenSource {
   public:
    std::int64_t size() const override { return 10'001; }
    void read(std::int64_t, std::span<std::int32_t> into) const override {
      tokens_read += std::ssize(into);
      std::ranges::fill(into, 1);
    }
    std::string description() const override { return "ones"; }
    mutable std::int64_t tokens_read = 0;
  };
  const Watched source;
  const auto o = options(Objective::next_token, 20);
  TokenBatches reader(source, SampleOrder(source.size(), o), o, 100);
  std::vector<std::byte> tokens(3 * 80), none;
  const std::span<std::byte> into[] = {tokens, none};
  reader.fill(Split::training, 0, {{3, 8, 5, 1, 80}, {3, 8, 0, 0, 80}}, into);
  EXPECT_EQ(source.tokens_read, 3 * 21) << "one sample of each of 3 micro-batches";
  const std::span<std::byte> nothing[] = {none, none};
  reader.fill(Split::training, 0, {{3, 8, 0, 0, 80}, {3, 8, 0, 0, 80}}, nothing);
  EXPECT_EQ(source.tokens_read, 3 * 21);
}

TEST(TokenBatches, HidesOneTokenInSevenInThreeWays) {
  constexpr std::int64_t sequence = 100, samples = 1000, vocabulary = 500, mask = 103;
  const Count source(sequence * 2000 + 1, 500);
  auto o = options(Objective::masked, sequence);
  o.mask_token = mask;
  const SampleOrder order(source.size(), o);
  TokenBatches reader(source, order, o, vocabulary);
  const Batch read = batch(reader, 0, samples);
  double chosen = 0, masked = 0, kept = 0;
  for (std::size_t i = 0; i < read.tokens.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i) / sequence,
               position = static_cast<std::int64_t>(i) % sequence;
    const auto original =
        static_cast<std::int32_t>((order.window_start(Split::training, sample) + position) % 500);
    if (read.targets[i] < 0) {
      EXPECT_EQ(read.targets[i], -1);
      EXPECT_EQ(read.tokens[i], original);
      continue;
    }
    EXPECT_EQ(read.targets[i], original);
    ++chosen;
    // The data has the mask token too: one in 500 is as hidden when it is kept.
    masked += read.tokens[i] == mask;
    kept += read.tokens[i] == original && original != mask;
  }
  EXPECT_EQ(chosen, static_cast<double>(reader.target_count(Split::training, 0, samples)));
  // 100000 positions: five standard deviations of binomials are 0.0057, 0.016 and 0.012.
  EXPECT_NEAR(chosen / (sequence * samples), 0.15, 0.0057);
  EXPECT_NEAR(masked / chosen, 0.8, 0.016);
  EXPECT_NEAR(kept / chosen, 0.1 + 0.1 / 499, 0.012);
}

TEST(TokenBatches, HideBehindTheLastIdWhereNoneIsGiven) {
  const Count source(2001, 9);
  const auto o = options(Objective::masked, 20);
  TokenBatches reader(source, SampleOrder(source.size(), o), o, 10);
  const Batch read = batch(reader, 0, 50);
  std::int64_t masked = 0;
  for (std::size_t i = 0; i < read.tokens.size(); ++i) {
    masked += read.tokens[i] == 9;
    EXPECT_TRUE(read.tokens[i] != 9 || read.targets[i] >= 0) << "only what is hidden, as the data has no 9";
  }
  EXPECT_GT(masked, 0);
}

TEST(TokenBatches, RefuseAMaskTokenThatIsNotInTheVocabulary) {
  const Count source(2001, 9);
  auto o = options(Objective::masked, 20);
  o.mask_token = 10;
  const SampleOrder order(source.size(), o);
  EXPECT_THAT(
      [&] { TokenBatches(source, order, o, 10); },
      ThrowsMessage<Error>(HasSubstr("mask_token is 10, but the ids that the model takes are 0 to 9")));
}

TEST(TokenBatches, HidesSomethingOfEachSampleHoweverShort) {
  const Count source(2001, 9);
  const auto o = options(Objective::masked, 2);
  TokenBatches reader(source, SampleOrder(source.size(), o), o, 10);
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    EXPECT_GE(reader.target_count(Split::training, sample, 1), 1);
    const Batch read = batch(reader, sample, 1);
    EXPECT_EQ((read.targets[0] >= 0) + (read.targets[1] >= 0),
              reader.target_count(Split::training, sample, 1));
  }
}

TEST(TokenBatches, HidesOtherPositionsInTheNextEpochAndTheSameInEachEvaluation) {
  const Count source(2001, 99);
  const auto o = options(Objective::masked, 20);
  const SampleOrder order(source.size(), o);
  TokenBatches reader(source, order, o, 100);
  EXPECT_EQ(batch(reader, 0, 2, Split::held_out), batch(reader, 0, 2, Split::held_out));
  EXPECT_NE(batch(reader, 0, 2, Split::held_out),
            batch(reader, order.windows(Split::held_out), 2, Split::held_out));
  EXPECT_NE(batch(reader, 0, 95).targets, batch(reader, 95, 95).targets);
}

TEST(TokenBatches, RefusesATokenThatTheModelHasNoIdFor) {
  const Count source(1001, 100);
  const auto causal = options(Objective::next_token, 500);
  const SampleOrder order(source.size(), causal, 0);
  TokenBatches enough(source, order, causal, 100), few(source, order, causal, 99);
  EXPECT_THAT(batch(enough, 0, 2).targets, Each(Ne(-1)));
  EXPECT_THAT([&] { batch(few, 0, 2); },
              ThrowsMessage<Error>(HasSubstr("99, but the ids that the model takes are 0 to 98")));
}

}  // namespace
}  // namespace alpa
