#include "libalpa/sampler/decoder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "libalpa/base/error.h"
#include "libalpa/checkpoint/initial_state.h"
#include "tests/sampler/small_decoding.h"
#include "tests/support/interpreter.h"
#include "tests/trainer/tiny_training.h"

// A decoder is given one token of each sample after another, keeps keys and values, and is held to what works
// out the whole sequence at once.
namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;

constexpr std::int64_t kSamples = 8;

/// Scores [samples, sequence, vocabulary], made of `tokens` [samples, sequence] in steps of so many of each.
std::vector<float> scores_of(Decoder& decoder, const std::vector<std::int32_t>& tokens, std::int64_t samples,
                             std::int64_t at_once) {
  const std::int64_t sequence = std::ssize(tokens) / samples, words = decoder.vocabulary();
  std::vector<float> all(static_cast<std::size_t>(samples * sequence * words));
  std::vector<std::int32_t> step(static_cast<std::size_t>(samples * at_once)), places(step.size());
  for (std::int64_t first = 0; first < sequence; first += at_once) {
    for (std::int64_t s = 0; s < samples; ++s)
      for (std::int64_t i = 0; i < at_once; ++i) {
        step[static_cast<std::size_t>(s * at_once + i)] =
            tokens[static_cast<std::size_t>(s * sequence + first + i)];
        places[static_cast<std::size_t>(s * at_once + i)] = static_cast<std::int32_t>(first + i);
      }
    decoder.run(step, places);
    const std::span<const float> scores = decoder.scores();
    for (std::int64_t s = 0; s < samples; ++s)
      std::copy_n(scores.begin() + s * at_once * words, at_once * words,
                  all.begin() + (s * sequence + first) * words);
  }
  return all;
}

class FamilyOfDecoder : public ::testing::TestWithParam<const char*> {};

// In float32 against float64: scores are of order 1, and some hundred roundings of 6e-8 each stay far below.
TEST_P(FamilyOfDecoder, GivesTheScoresOfPyTorch) {
  TrainedElsewhere trained(GetParam());
  const std::vector<std::int64_t> stored = trained.integers("tokens");
  const std::vector<std::int32_t> tokens(stored.begin(), stored.end());
  const std::vector<double> expected = trained.numbers("logits");
  for_train_ranks(1, [&](const TrainRanks& ranks) {
    Decoder decoder(trained.plan(), trained.graph(), 2, ranks);
    EXPECT_EQ(decoder.load(trained.checkpoint(), trained.log()).step, 0);
    ASSERT_EQ(decoder.sequence(), 12);
    const std::vector<float> scores = scores_of(decoder, tokens, 2, 1);
    ASSERT_EQ(scores.size(), expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i) ASSERT_NEAR(scores[i], expected[i], 1e-4) << i;
  });
}

TEST(DecoderOfManyTexts, IsRefusedWhereTheirKeysAndValuesTakeMoreThanThereIs) {
  const TrainedElsewhere trained("gpt2");
  for_train_ranks(1, [&](const TrainRanks& ranks) {
    EXPECT_THAT(
        [&] { Decoder(trained.plan(), trained.graph(), std::int64_t{1} << 32, ranks); },
        Throws<Error>(AllOf(Property(&Error::kind, ErrorKind::allocation),
                            Property(&Error::what, HasSubstr("continuing 4294967296 texts at once takes ")),
                            Property(&Error::hint, HasSubstr("a smaller --at-once")))));
  });
}

INSTANTIATE_TEST_SUITE_P(PyTorch, FamilyOfDecoder, ::testing::Values("gpt2", "llama"));

struct WholeSequences {
  static std::vector<std::int32_t> some_tokens(std::int64_t sequence) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(kSamples * sequence));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i * 7 % 61);
    return tokens;
  }

  static Values initial(const Graph& graph, const State& state) {
    const TensorType& type = value_of(graph, state.value).type;
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(type)));
    const std::int64_t count = element_count(type.shape);
    fill_initial_state(graph, state, {Shape(type.shape.size(), 0), type.shape, 0, count}, 1, bytes.data());
    return unpacked(bytes, type.dtype);
  }

  /// What the forward of the model gives for whole sequences, node by node, of a micro-batch at a time.
  static Values expected(const Graph& graph, const std::vector<std::int32_t>& tokens) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Interpreter forward(*device, graph);
    for (const State& state : graph.states) forward.set(state.value, initial(graph, state));
    const auto loss =
        std::ranges::find_if(graph.nodes, [](const Node& node) { return node.op->name == "cross_entropy"; });
    Values all;
    const std::size_t of_micro_batch = tokens.size() * static_cast<std::size_t>(graph.samples) / kSamples;
    for (std::size_t first = 0; first < tokens.size(); first += of_micro_batch) {
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      for (const Input& input : graph.inputs)
        if (input.is_sequence())
          forward.set(input.value, Values(begin, begin + static_cast<std::ptrdiff_t>(of_micro_batch)));
      forward.run_forward({1, 0, 0, false});
      const Values scores = forward.get(loss->operands[0]);
      all.insert(all.end(), scores.begin(), scores.end());
    }
    return all;
  }

  // Scores are sums of some hundred terms of order 0.1, in another order: 1e-5 of the largest is some ten
  // roundings of f32. Those of bf16 are rounded to 8 bits at each of some 20 operators in a row, twice where
  // sums are split.
  static void expect_scores(const TinyTraining& tiny, Precision precision) {
    TemporaryFolder folder;
    const std::filesystem::path checkpoint = folder.path() / "initial.h5";
    save_checkpoint(checkpoint, {}, tiny.graph(),
                    [&](const State& state, void* values) {
                      const std::vector<std::byte> bytes = packed(
                          initial(tiny.graph(), state), value_of(tiny.graph(), state.value).type.dtype);
                      std::ranges::copy(bytes, static_cast<std::byte*>(values));
                    },
                    {});
    const std::vector<std::int32_t> tokens = some_tokens(tiny.options().sequence);
    const Values whole = expected(tiny.graph(), tokens);
    double largest = 0;
    for (const double score : whole) largest = std::max(largest, std::abs(score));
    const double bound = precision == Precision::f32 ? 1e-5 : rounding_error(tiny.graph(), DType::bf16);
    std::mutex hdf5;  // is for one thread; ranks of a job are processes
    for (const std::int64_t at_once : {std::int64_t{1}, tiny.options().sequence / 4, tiny.options().sequence})
      for_train_ranks(tiny.plan().devices(), [&](const TrainRanks& ranks) {
        Decoder decoder(tiny.plan(), tiny.graph(), kSamples, ranks, at_once);
        {
          const std::lock_guard one_at_a_time(hdf5);
          decoder.load_own(checkpoint, {});
        }
        const std::vector<float> scores = scores_of(decoder, tokens, kSamples, at_once);
        ASSERT_EQ(scores.size(), whole.size());
        for (std::size_t i = 0; i < scores.size(); ++i)
          ASSERT_NEAR(scores[i], whole[i], bound * largest) << "score " << i << ", " << at_once << " at once";
      });
  }
};

class DecodedTiny : public ::testing::TestWithParam<TinyCase> {};

TEST_P(DecodedTiny, GivesTheScoresOfWholeSequences) {
  WholeSequences::expect_scores(TinyTraining(GetParam()), GetParam().precision);
}

// What training fetches from the host's memory for its use, decoding does too.
TEST(DecodedOffload, HasStatesOnTheHostWhereTrainingHasThem) {
  TinyTraining tiny({"gpt", "zero-3", 2});
  std::vector<ValueIndex> states;
  for (const State& state : tiny.graph().states)  // what one layer uses; the table is tied
    if (state.name.starts_with("block.")) states.push_back(state.value);
  tiny.set_on_host(states);
  WholeSequences::expect_scores(tiny, Precision::f32);
}

constexpr auto kCaseName = [](const auto& test) { return test.param.name(); };

INSTANTIATE_TEST_SUITE_P(
    Tiny, DecodedTiny,
    ::testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "data-parallel", 2, 2},
                      TinyCase{"gpt", "mixed", 4, 2}, TinyCase{"gpt", "zero-3", 2},
                      TinyCase{"gpt", "tensor x data, data x data", 8, 2}, TinyCase{"gpt", "ring x data", 4},
                      TinyCase{"gpt", "interleaved", 4, 4, "interleaved"},
                      TinyCase{"llama", "tensor x data", 4}, TinyCase{"llama", "ring x tensor", 4},
                      TinyCase{"llama", "mixed", 4, 2, "1f1b", Rematerialize::never, Precision::bf16}),
    kCaseName);

}  // namespace
}  // namespace alpa
