#include "libalpa/weights/match_weights.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Ours = std::map<std::string, Shape>;
using Theirs = std::map<std::string, StoredTensor>;

const Ours ours{{"embedding.table", {5, 4}},
                {"block.0.attention.query", {4, 2, 2}},
                {"block.0.attention.key", {4, 2, 2}},
                {"block.0.attention.value", {4, 2, 2}},
                {"head.norm.gain", {4}}};

Theirs file_of(const std::vector<StoredTensor>& tensors) {
  Theirs file;
  for (const StoredTensor& tensor : tensors) file[tensor.name] = tensor;
  return file;
}

const std::vector<StoredTensor> their_tensors{
    {"wte.weight", "F32", {5, 4}}, {"h.0.attn.c_attn.weight", "F16", {4, 12}}, {"ln_f.weight", "BF16", {4}}};

Theirs file_with(const StoredTensor& another) {
  std::vector<StoredTensor> tensors = their_tensors;
  tensors.push_back(another);
  return file_of(tensors);
}

std::string refusal(const Ours& model, const Theirs& file) {
  try {
    match_weights(model, file, "x.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "it was taken";
}

TEST(MatchWeights, FindsATensorForEachWeight) {
  const Theirs file = file_of(their_tensors);
  const MatchedWeights matched = match_weights(ours, file, "x");
  EXPECT_EQ(matched.family->name, "gpt2");
  EXPECT_EQ(matched.places.size(), ours.size());
  EXPECT_EQ(matched.theirs.size(), 3u);
}

TEST(MatchWeights, TakesTheNamesOfTheModelItself) {
  const Theirs file = file_of({{"embedding.table", "F32", {5, 4}},
                               {"block.0.attention.query", "BF16", {4, 2, 2}},
                               {"block.0.attention.key", "F32", {4, 2, 2}},
                               {"block.0.attention.value", "F32", {4, 2, 2}},
                               {"head.norm.gain", "F32", {4}}});
  const MatchedWeights matched = match_weights(ours, file, "x");
  EXPECT_EQ(matched.family->name, "own");
  EXPECT_EQ(matched.places.size(), ours.size());
  for (const WeightPlace& place : matched.places) {
    EXPECT_EQ(place.theirs, place.ours);
    EXPECT_TRUE(place.where.is_same());
    EXPECT_EQ(place.where.their_shape(), ours.at(place.ours));
  }
}

TEST(MatchWeights, KnowsOtherSpellingsAndWhatIsOfNoUse) {
  std::vector<StoredTensor> tensors = their_tensors;
  for (StoredTensor& tensor : tensors) tensor.name = "transformer." + tensor.name;
  tensors.push_back({"transformer.h.0.attn.bias", "U8", {1, 1, 9, 9}});
  tensors.push_back({"lm_head.weight", "F32", {5, 4}});
  const Theirs file = file_of(tensors);
  const MatchedWeights matched = match_weights(ours, file, "x");
  EXPECT_EQ(matched.theirs.at("wte.weight")->name, "transformer.wte.weight");
  EXPECT_THAT(matched.unused, ElementsAre("transformer.h.0.attn.bias"));
  EXPECT_THAT(matched.copies, ElementsAre("lm_head.weight"));
}

TEST(MatchWeights, TakesAHeadOfItsOwnForNoCopy) {
  Ours untied = ours;
  untied["head.table"] = {5, 4};
  const Theirs file = file_with({"lm_head.weight", "F32", {5, 4}});
  const MatchedWeights matched = match_weights(untied, file, "x");
  EXPECT_TRUE(matched.copies.empty());
  EXPECT_TRUE(matched.theirs.contains("lm_head.weight"));
}

TEST(MatchWeights, ReportsAllThatIsMissingOrSuperfluousWithTheNearestName) {
  EXPECT_THAT(
      refusal(ours, file_of({their_tensors[0],
                             {"h.0.attn.c_attm.weight", "F32", {4, 12}},
                             {"h.1.ln_1.weight", "F32", {4}}})),
      AllOf(HasSubstr("'x.safetensors'"),
            HasSubstr("'h.0.attn.c_attn.weight' is missing; nearest in the file: 'h.0.attn.c_attm.weight'"),
            HasSubstr("'ln_f.weight' is missing"),
            HasSubstr("'h.0.attn.c_attm.weight' is not of this model; nearest of the model: "
                      "'h.0.attn.c_attn.weight'"),
            HasSubstr("'h.1.ln_1.weight' is not of this model"), HasSubstr("try: ")));
}

TEST(MatchWeights, ReportsOtherShapesAndTypes) {
  EXPECT_THAT(refusal(ours, file_of({their_tensors[0], their_tensors[1], {"ln_f.weight", "I64", {7}}})),
              AllOf(HasSubstr("'ln_f.weight' is I64, expected F32, BF16 or F16"),
                    HasSubstr("'ln_f.weight' is 7, expected 4 for the model's 'head.norm.gain'")));
}

TEST(MatchWeights, ShowsTwelveFaultsAndCountsTheOthers) {
  std::vector<StoredTensor> tensors = their_tensors;
  for (int i = 1; i <= 20; ++i) tensors.push_back({"h." + std::to_string(i) + ".ln_1.weight", "F32", {4}});
  EXPECT_THAT(refusal(ours, file_of(tensors)), HasSubstr("and 8 more"));
}

TEST(MatchWeights, ReportsATensorThatIsThereInTwoSpellings) {
  EXPECT_THAT(refusal(ours, file_with({"transformer.wte.weight", "F32", {5, 4}})),
              HasSubstr("appears twice"));
}

TEST(MatchWeights, ReportsWhichNamesItKnows) {
  EXPECT_THAT(refusal(ours, file_of({{"layers.0.w", "F32", {4}}})),
              AllOf(HasSubstr("has 1 tensors, and none"), HasSubstr("'wte.weight'"), HasSubstr("Llama")));
}

TEST(MatchWeights, RefusesAModelOfAnotherForm) {
  Ours gated = ours;
  gated["block.0.mlp.gate"] = {4, 8};
  gated["head.norm.gain"] = {2, 2};
  EXPECT_THAT(
      refusal(gated, file_of(their_tensors)),
      AllOf(HasSubstr("the names of GPT-2 have none for 2 of the model's 6 weights"),
            HasSubstr("'block.0.mlp.gate'"), HasSubstr("'head.norm.gain'"), Not(HasSubstr("embedding"))));
}

}  // namespace
}  // namespace alpa
