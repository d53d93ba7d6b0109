// Against what the library `sentencepiece` made of the same texts.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/tokenizer/stored_cases.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class StoredSentencePiece : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      tokenizer_ = open_tokenizer(stored_folder + GetParam() + ".model");
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr("which this build is without"));
      GTEST_SKIP() << error.what();
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(StoredSentencePiece, GivesTheIdsAndTextsOfTheReference) {
  for (const nlohmann::json& one : stored_cases()["cases"]) {
    if (!one["ids"].contains(GetParam())) continue;  // versions of the library choose otherwise
    const std::vector<std::int32_t> ids = tokenizer_->encode(one["text"].get<std::string>());
    EXPECT_EQ(ids, one["ids"][GetParam()].get<std::vector<std::int32_t>>()) << one["name"];
    EXPECT_EQ(tokenizer_->decode(ids), one["decoded"][GetParam()].get<std::string>()) << one["name"];
  }
  if (!stored_cases()["mixed"].contains(GetParam())) return;
  EXPECT_EQ(id_digests(tokenizer_->encode(mixed_text())),
            stored_cases()["mixed"][GetParam()].get<std::vector<std::string>>());
}

TEST_P(StoredSentencePiece, EndsTextsWithTheTokenOfItsModel) {
  EXPECT_EQ(tokenizer_->end_of_text(), 2);
  EXPECT_EQ(tokenizer_->special_token("</s>"), 2);
  EXPECT_EQ(tokenizer_->special_token("the"), std::nullopt);
  EXPECT_EQ(tokenizer_->decode({{2}}), "");
}

TEST_P(StoredSentencePiece, RefusesWhatItDoesNotTake) {
  EXPECT_THAT([&] { tokenizer_->decode({{100000}}); },
              ThrowsMessage<Error>(HasSubstr("no token has the id 100000")));
  EXPECT_THAT([&] { tokenizer_->encode(std::string(17 << 20, 'x')); },
              ThrowsMessage<Error>(HasSubstr("a document of more than 16 MiB")));
  const std::string model = stored_file(GetParam() + ".model");
  for (const std::size_t bytes : {model.size() / 2, model.size() / 2 + 1, model.size() - 1})
    EXPECT_THAT(
        [&] {
          make_tokenizer({"cut.model", model.substr(0, bytes)});
        },
        ThrowsMessage<Error>(HasSubstr("'cut.model' is a damaged model of SentencePiece")));
}

INSTANTIATE_TEST_SUITE_P(Of, StoredSentencePiece, testing::Values("bpe", "unigram"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace alpa
