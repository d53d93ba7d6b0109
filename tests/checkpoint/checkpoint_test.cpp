#include "libalpa/checkpoint/checkpoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "libalpa/base/error.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class Checkpoint : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "checkpoints" / "step-00000042.h5";
};

TEST_F(Checkpoint, GivesBackAnyTilesOfWhatWasSavedFromOthers) {
  StatesInMemory halves = StatesInMemory::none();
  for (const std::int64_t row : {15, 0}) {
    halves.add_tile(0, {row, 0}, {15, 20}, 0.5f);
    halves.add_tile(1, {row, 0}, {15, 20}, 0.5f);
  }
  halves.add_tile(2, {0}, {12}, 0.5f);
  halves.add_tile(2, {8}, {12}, 0.5f);  // 8 to 11 are held twice
  halves.add_tile(3, {}, {}, 0.5f);
  halves.save(path_, 42);

  StatesInMemory expected = StatesInMemory::none(), read = expected;
  for (StatesInMemory* states : {&expected, &read}) {
    const float salt = states == &expected ? 0.5f : -1;
    states->add_tile(1, {3, 5}, {20, 10}, salt);
    states->add_tile(0, {0, 0}, {30, 20}, salt);
    states->add_tile(3, {}, {}, salt);
  }
  EXPECT_EQ(load_checkpoint(path_, read.graph, read.tiles),
            (CheckpointFacts{42, 336, StatesInMemory::sample_data(), "batch = 8\n"}));
  EXPECT_EQ(read.storage, expected.storage);
  EXPECT_EQ(verify_checkpoint(path_).step, 42);
}

TEST_F(Checkpoint, IsTheSameFileHoweverTheStatesWereCut) {
  StatesInMemory rows = StatesInMemory::none();
  for (std::int64_t row = 0; row < 30; ++row)
    for (const int state : {0, 1}) rows.add_tile(state, {row, 0}, {1, 20}, 0.5f);
  rows.add_tile(2, {0}, {20}, 0.5f);
  rows.add_tile(3, {}, {}, 0.5f);
  rows.save(folder_.path() / "rows.h5", 42);
  StatesInMemory::whole(0.5f).save(folder_.path() / "whole.h5", 42);
  const std::string name = folder_.path().string();
  EXPECT_EQ(
      run_command("h5diff --exclude-path /provenance " + name + "/rows.h5 " + name + "/whole.h5").status, 0);
}

TEST_F(Checkpoint, HasNoPaddingAndIsReadUnderAnother) {
  const auto padded = [](std::int64_t padding, float salt) {
    StatesInMemory states;
    states.add_state("table", {DType::f32, {30 + padding, 20}});
    if (padding > 0) states.graph.states.back().unpadded = {30, 20};
    const std::int64_t half = (30 + padding) / 2;
    for (const std::int64_t row : {std::int64_t{0}, half}) states.add_tile(0, {row, 0}, {half, 20}, salt);
    return states;
  };
  padded(34, 0.5f).save(folder_.path() / "padded.h5",
                        42);  // whose second tile, from row 32 on, is padding alone
  padded(0, 0.5f).save(folder_.path() / "plain.h5", 42);
  const std::string name = folder_.path().string();
  EXPECT_EQ(
      run_command("h5diff --exclude-path /provenance " + name + "/padded.h5 " + name + "/plain.h5").status,
      0);
  StatesInMemory read = padded(2, -1), expected = padded(2, 0.5f);
  load_checkpoint(folder_.path() / "padded.h5", read.graph, read.tiles);
  auto* last = reinterpret_cast<float*>(expected.storage[1].data());
  std::fill(last + 14 * 20, last + 16 * 20, 0.0f);
  EXPECT_EQ(read.storage, expected.storage);
}

TEST_F(Checkpoint, HasNoPaddingOfAnyDimension) {
  const auto heads = [](std::int64_t padding, std::int64_t tile_heads, float salt) {
    StatesInMemory states;
    states.add_state("query", {DType::f32, {6, 5 + padding, 4}});
    if (padding > 0) states.graph.states.back().unpadded = {6, 5, 4};
    for (const std::int64_t row : {0, 3})
      for (std::int64_t head = 0; head < 5 + padding; head += tile_heads)
        states.add_tile(0, {row, head, 0}, {3, tile_heads, 4}, salt);
    return states;
  };
  heads(3, 2, 0.5f).save(folder_.path() / "padded.h5", 42);  // the last tiles are padding alone
  heads(0, 5, 0.5f).save(folder_.path() / "plain.h5", 42);
  const std::string name = folder_.path().string();
  EXPECT_EQ(
      run_command("h5diff --exclude-path /provenance " + name + "/padded.h5 " + name + "/plain.h5").status,
      0);
  StatesInMemory read = heads(1, 3, -1), expected = heads(1, 3, 0.5f);
  load_checkpoint(folder_.path() / "padded.h5", read.graph, read.tiles);
  for (const std::size_t tile : {1, 3})  // heads 3 to 5, the last of which is padding
    for (int row = 0; row < 3; ++row) {
      auto* last = reinterpret_cast<float*>(expected.storage[tile].data()) + (row * 3 + 2) * 4;
      std::fill(last, last + 4, 0.0f);
    }
  EXPECT_EQ(read.storage, expected.storage);
}

/// A sum that devices hold in terms: term t of element i is 10^t (i + salt), padding left aside.
StatesInMemory in_terms(int terms, std::int64_t padding, float salt) {
  StatesInMemory states;
  states.add_state("error", {DType::f32, {6 + padding, 5}});
  states.graph.states.back().holds_terms = true;
  if (padding > 0) states.graph.states.back().unpadded = {6, 5};
  for (int term = 0; term < terms; ++term) {
    states.add_tile(0, {0, 0}, {6 + padding, 5}, salt);
    states.tiles.back().term = term;
    auto* const values = reinterpret_cast<float*>(states.storage.back().data());
    for (std::int64_t i = 0; i < 30; ++i) values[i] *= std::pow(10.0f, static_cast<float>(term));
    std::fill(values + 30, values + 30 + 5 * padding, 0.0f);
  }
  return states;
}

TEST_F(Checkpoint, HasTermsOfSumsOneByOneAndAddsThemUpWhereThereAreOthers) {
  const StatesInMemory saved = in_terms(3, 2, 1);
  save_checkpoint(path_, {42, 336, {}, "batch = 8\n"}, saved.graph, saved.tiles, {}, {}, StateTerms{3});
  EXPECT_EQ(open_checkpoint(path_).tensors().at("error"), (TensorType{DType::f32, {3, 6, 5}}));
  StatesInMemory same = in_terms(3, 1, -9);
  load_checkpoint(path_, same.graph, same.tiles, {}, StateTerms{3});
  EXPECT_EQ(same.storage, in_terms(3, 1, 1).storage);
  EXPECT_EQ(states_in_other_terms(path_, same.graph, StateTerms{3}), 0);
  StatesInMemory fewer = in_terms(2, 0, -9), sum = in_terms(1, 0, 1);
  load_checkpoint(path_, fewer.graph, fewer.tiles, {}, StateTerms{2});
  auto* const values = reinterpret_cast<float*>(sum.storage[0].data());
  for (int i = 0; i < 30; ++i) values[i] *= 111;
  EXPECT_EQ(fewer.storage[0], sum.storage[0]);
  EXPECT_EQ(fewer.storage[1], std::vector<char>(fewer.storage[1].size(), 0));
  EXPECT_EQ(states_in_other_terms(path_, fewer.graph, StateTerms{2}), 1);
}

TEST_F(Checkpoint, HoldsTheLossScaleOfF16AndRefusesOneThatNoRunComesTo) {
  const StatesInMemory states = StatesInMemory::whole(0);
  const auto saved = [&](const LossScale& scale) {
    save_checkpoint(path_, {42, 336, {}, "batch = 8\n", scale}, states.graph, states.tiles, {}, {});
    return verify_checkpoint(path_).loss_scale;
  };
  EXPECT_EQ(saved({4096, 7, 42}), (LossScale{4096, 7, 42}));
  for (const LossScale& scale : {LossScale{0.5, 7, 3}, LossScale{std::nan(""), 7, 3}, LossScale{8, -1, 3},
                                 LossScale{8, 7, -1}, LossScale{8, 7, 43}})
    EXPECT_THAT([&] { saved(scale); }, ThrowsMessage<Error>(HasSubstr("which no run can have")));
}

TEST_F(Checkpoint, OfAStepOrOfSamplesThatNoRunComesToIsRefused) {
  const StatesInMemory states = StatesInMemory::whole(0);
  const auto saved = [&](std::int64_t step, std::int64_t samples, std::int64_t tokens) {
    save_checkpoint(path_, {step, samples, {.length = tokens}, "batch = 8\n"}, states.graph, states.tiles, {},
                    {});
    return verify_checkpoint(path_).samples;
  };
  EXPECT_EQ(saved(0, 0, 0), 0);
  EXPECT_EQ(saved(1'000'000, 4'000'000'000, 300'000'000'000), 4'000'000'000);
  for (const auto& [step, samples, tokens] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{-1, 8, 99},
                                              {INT64_MIN, 8, 99},
                                              {INT64_MAX, INT64_MAX, 99},
                                              {2, -5, 99},
                                              {2, INT64_MAX - 2, 99},
                                              {2, 1, 99},
                                              {0, 8, 99},
                                              {2, 16, -1}})
    EXPECT_THAT(([&, step = step, samples = samples, tokens = tokens] { saved(step, samples, tokens); }),
                ThrowsMessage<Error>(HasSubstr("which no run can have")))
        << step << " " << samples << " " << tokens;
}

TEST_F(Checkpoint, OfAnotherModelIsRefusedWithATableOfDifferences) {
  StatesInMemory::whole(0).save(path_, 42);
  StatesInMemory other = StatesInMemory::none(30, 24);
  other.add_state("block.1.bias", {DType::f32, {3}});
  other.graph.states[StateIndex(3)].name = "heat";
  try {
    load_checkpoint(path_, other.graph, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_THAT(error.happened(),
                AllOf(HasSubstr("6 of 6 states differ"),
                      ContainsRegex("block.0.weight.master +f32\\[30x24\\] +f32\\[30x20\\]"),
                      ContainsRegex("block.1.bias +f32\\[3\\] +-\n"),
                      ::testing::ContainsRegex("temperature +- +f32\\[scalar\\]")));
  }
}

TEST_F(Checkpoint, ATableOfDifferencesStaysShort) {
  StatesInMemory many = StatesInMemory::whole(0);
  many.save(path_, 42);
  for (int i = 0; i < 100; ++i) many.add_state("extra." + std::to_string(i), {DType::f32, {1}});
  EXPECT_THAT([&] { load_checkpoint(path_, many.graph, {}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("100 of 104 states differ"), HasSubstr("and 88 more"),
                                         Not(HasSubstr("temperature")))));
}

TEST_F(Checkpoint, FingerprintDistinguishesModelsAndNotPlansOrOrder) {
  const Graph graph = StatesInMemory::none().graph;
  Graph reversed = graph;
  std::reverse(reversed.states.begin(), reversed.states.end());
  EXPECT_EQ(state_fingerprint(graph), state_fingerprint(reversed));
  EXPECT_NE(state_fingerprint(graph), state_fingerprint(StatesInMemory::none(30, 21).graph));
}

TEST_F(Checkpoint, WithAFlippedByteIsRefused) {
  StatesInMemory::whole(0).save(path_, 42);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const float value = 1123;  // element 123 of the master weights
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(bytes[at] ^ 1));
  file.close();
  EXPECT_THAT([&] { verify_checkpoint(path_); },
              ThrowsMessage<Error>(ContainsRegex("block.0.weight.master': damaged: [a-z]")));
}

TEST_F(Checkpoint, SaysWhereItCannotBeWritten) {
  std::ofstream(folder_.path() / "checkpoints") << "a file in the way";
  EXPECT_THAT([&] { StatesInMemory::whole(0).save(path_, 42); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("cannot write"), HasSubstr("while saving the checkpoint of step 42"))));
}

}  // namespace
}  // namespace alpa
