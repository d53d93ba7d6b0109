// Against what the library `tokenizers` made of the same texts.
#include <gmock/gmock.h>

#include <random>

#include "libalpa/base/error.h"
#include "tests/tokenizer/stored_cases.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

using Ids = std::vector<std::int32_t>;

std::unique_ptr<Tokenizer> stored_tokenizer(const std::string& name) {
  const nlohmann::json& variants = stored_cases()["variants"];
  return variants.contains(name) ? make_tokenizer(changed_gpt2(variants[name]))
                                 : open_tokenizer(stored_folder + name + ".json");
}

/// Whether texts come back as they were.
bool keeps_texts(const std::string& name) {
  return name != "nfc" && name != "removed" && !name.starts_with("space before");
}

class StoredBpe : public testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = stored_tokenizer(GetParam());
};

TEST_P(StoredBpe, GivesTheIdsOfTheReference) {
  for (const nlohmann::json& one : stored_cases()["cases"]) {
    const std::string text = one["text"];
    const Ids ids = tokenizer_->encode(text);
    EXPECT_EQ(ids, one["ids"][GetParam()].get<Ids>()) << one["name"];
    if (keeps_texts(GetParam())) {
      EXPECT_EQ(tokenizer_->decode(ids), text) << one["name"];
    }
  }
}

TEST_P(StoredBpe, GivesTheIdsOfTheReferenceForALongText) {
  const std::vector<std::string> digests = id_digests(tokenizer_->encode(mixed_text())),
                                 expected = stored_cases()["mixed"][GetParam()];
  const auto differs = std::mismatch(digests.begin(), digests.end(), expected.begin(), expected.end());
  EXPECT_EQ(digests, expected) << "first within " << differs.first - digests.begin() << "000 and following";
}

TEST_P(StoredBpe, GivesTheSameWhereverTextsAreCut) {
  const std::string text = mixed_text().substr(0, 30000) + "\xf0\x9f\xff\xfe";
  const Ids whole = tokenizer_->encode(text);
  std::mt19937 random(1);
  for (const std::size_t longest : {3u, 50u, 5000u}) {
    const std::unique_ptr<TokenEncoder> encoder = tokenizer_->encoder();
    for (int document = 0; document < 2; ++document) {  // an encoder is there for many
      Ids ids;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = random() % longest + 1;
        encoder->add(std::string_view(text).substr(at, bytes), ids);
        at += bytes;
      }
      encoder->end(ids);
      ASSERT_EQ(ids, whole) << "pieces of up to " << longest;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, StoredBpe,
                         testing::Values("gpt2", "llama3", "nfc", "space before", "digits",
                                         "space before pieces", "removed", "looks behind"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(ByteLevelBpe, TakesSpecialTokensWhereItIsAskedTo) {
  for (const char* name : {"gpt2", "llama3"}) {
    const auto tokenizer = stored_tokenizer(name);
    for (const nlohmann::json& one : stored_cases()["cases"])
      if (one.contains("special")) {
        EXPECT_EQ(tokenizer->encode(one["text"].get<std::string>(), SpecialTokens::are_taken),
                  one["special"][name].get<Ids>());
      }
  }
  const auto tokenizer = stored_tokenizer("gpt2");
  EXPECT_THAT(tokenizer->encode("<|endoftext|>", SpecialTokens::are_taken), ElementsAre(0));
  EXPECT_THAT(tokenizer->encode("<|endoftext|>"), SizeIs(testing::Gt(1u))) << "a text may hold anything";
}

TEST(ByteLevelBpe, KnowsItsSpecialTokens) {
  const auto gpt2 = stored_tokenizer("gpt2"), llama3 = stored_tokenizer("llama3");
  EXPECT_EQ(gpt2->end_of_text(), 0);
  EXPECT_EQ(llama3->decode({{*llama3->end_of_text()}}), "<|end_of_text|>");
  EXPECT_EQ(llama3->special_token("<|eot_id|>"), *llama3->end_of_text() + 1);
  EXPECT_EQ(llama3->special_token("<tool_call>"), std::nullopt) << "a token, and none for the model alone";
  EXPECT_EQ(llama3->vocabulary(), 1204);
  EXPECT_EQ(gpt2->description(), "byte-level BPE, 1300 tokens");
}

TEST(ByteLevelBpe, TakesBytesThatAreNoCharactersAsTheyAre) {
  for (const char* name : {"gpt2", "llama3"}) {
    const auto tokenizer = stored_tokenizer(name);
    for (const std::string text : {"\xff", "the\xc3 end", "\xe2\x82", "a\xed\xa0\x80z", "\xc0\xaf",
                                   "\xf4\x90\x80\x80 \xfe\xfe", "caf\xe9 na\xefve"}) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    }
    // They end the words beside them, and do not change these.
    Ids parts = tokenizer->encode("in the ");
    for (const std::string part : {"\xff\xfe", " beginning"})
      for (const std::int32_t id : tokenizer->encode(part)) parts.push_back(id);
    EXPECT_EQ(tokenizer->encode("in the \xff\xfe beginning"), parts);
  }
}

TEST(ByteLevelBpe, TakesTheSpaceBesideTokensThatAskForIt) {
  const auto tokenizer = make_tokenizer(changed_gpt2(
      {{"added_tokens",
        {{{"id", 1300}, {"content", "<mask>"}, {"lstrip", true}, {"rstrip", true}, {"special", false}}}}}));
  Ids expected = tokenizer->encode("a");
  expected.push_back(1300);
  for (const std::int32_t id : tokenizer->encode("b")) expected.push_back(id);
  EXPECT_EQ(tokenizer->encode("a \u3000\n<mask> \u00a0b"), expected);
}

TEST(ByteLevelBpe, RefusesIdsThatNoTokenHas) {
  const auto tokenizer = stored_tokenizer("gpt2");
  EXPECT_THAT([&] { tokenizer->decode({{1300}}); },
              ThrowsMessage<Error>(HasSubstr("no token has the id 1300")));
  EXPECT_THAT([&] { tokenizer->decode({{-1}}); }, ThrowsMessage<Error>(HasSubstr("no token has the id -1")));
}

TEST(ByteLevelBpe, RefusesAWordThatDoesNotEnd) {
  const auto tokenizer = stored_tokenizer("gpt2");
  const auto encoder = tokenizer->encoder();
  Ids ids;
  const std::string piece(1 << 20, 'x');
  EXPECT_THAT(
      [&] {
        for (int i = 0; i < 9; ++i) encoder->add(piece, ids);
      },
      ThrowsMessage<Error>(HasSubstr("more than 4 MiB of a document make one word")));
}

TEST(ByteLevelBpe, TakesWordsUpTo4MiB) {
  const auto tokenizer = stored_tokenizer("gpt2");
  for (const char byte : {'x', '\xff'}) {
    const std::string longest(4 << 20, byte);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(longest)), longest);
    EXPECT_THAT([&] { tokenizer->encode(longest + byte); },
                ThrowsMessage<Error>(HasSubstr("more than 4 MiB of a document make one word")));
  }
}

}  // namespace
}  // namespace alpa
