// Texts whose tokens were made in part are gone on with, and the end is as if nothing had happened.
#include "libalpa/dataset/partial_tokens.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/dataset/encoded_texts.h"
#include "libalpa/tokenizer/tokenizer.h"
#include "tests/dataset/small_sources.h"
#include "tests/h5/damage.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Interruption {};

/// The tokenizer of GPT-2's tests, which is interrupted before it makes more than `left` documents.
class InterruptedTokenizer final : public Tokenizer {
 public:
  explicit InterruptedTokenizer(int most) : left_(most) {}

  int left() const { return left_; }
  std::unique_ptr<TokenEncoder> encoder(SpecialTokens special) const override {
    return std::make_unique<Encoder>(whole_->encoder(special), left_);
  }
  std::string decode(std::span<const std::int32_t> ids) const override { return whole_->decode(ids); }
  std::int64_t vocabulary() const override { return whole_->vocabulary(); }
  std::optional<std::int32_t> special_token(std::string_view text) const override {
    return whole_->special_token(text);
  }
  std::optional<std::int32_t> end_of_text() const override { return whole_->end_of_text(); }
  std::string description() const override { return whole_->description(); }

 private:
  class Encoder final : public TokenEncoder {
   public:
    Encoder(std::unique_ptr<TokenEncoder> whole, int& left) : whole_(std::move(whole)), left_(left) {}
    void add(std::string_view text, std::vector<std::int32_t>& ids) override {
      whole_->add(text, ids);
      if (left_ == 0) throw Interruption();
    }
    void end(std::vector<std::int32_t>& ids) override {
      whole_->end(ids);
      --left_;
    }

   private:
    std::unique_ptr<TokenEncoder> whole_;
    int& left_;
  };

  const std::unique_ptr<Tokenizer> whole_ =
      open_tokenizer(ALPA_SOURCE_DIR "/tests/reference/tokenizers/gpt2.json");
  mutable int left_;
};

class PartialTexts : public SmallSources {
 protected:
  static constexpr int kAll = 1000;

  void SetUp() override {
    const std::string lines =
        "\xef\xbb\xbf{\"text\":\"second\"}\n\n{\"text\":\"third, of several tokens\"}\n{\"text\":\"fourth\"}";
    std::string several_pieces;
    while (several_pieces.size() < 600'000) several_pieces += "the end of it ";
    files_ = {{write("a.txt", "first\n"), false},
              {write("b.jsonl", lines), true},
              {write_compressed("c.jsonl.gz", lines), true},
              {write_compressed("d.txt.gz", several_pieces), false}};
    whole_ = made();
  }

  /// The tokens, whose record is written behind each document; Interruption behind `most` documents. What is
  /// made is kept as if it had not become anything yet.
  std::vector<std::int32_t> made(int most = kAll, const std::string& made_with = "gpt2") {
    const InterruptedTokenizer tokenizer(most);
    PartialTokens partial(path("out.h5"), tokenizer.vocabulary(), made_with, info_, std::chrono::seconds(0));
    std::unique_ptr<TokenSource> source;
    try {
      source = encode_texts(files_, tokenizer, tokenizer.end_of_text(), "text", partial, info_);
    } catch (const Interruption&) {
      return {};
    }
    documents_made_ = most - tokenizer.left();
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(source->size()));
    source->read(0, tokens);
    partial.drop_record();
    return tokens;
  }

  /// Makes all after an interruption, and expects that it made so many documents, and what an uninterrupted
  /// conversion makes. The result is what is logged of it.
  std::string goes_on(int documents, const std::string& made_with = "gpt2") {
    testing::internal::CaptureStderr();
    const std::vector<std::int32_t> tokens = made(kAll, made_with);
    const std::string logged = testing::internal::GetCapturedStderr();
    EXPECT_EQ(documents_made_, documents) << logged;
    EXPECT_EQ(tokens, made());
    return logged;
  }

  std::vector<std::string> names_of_partial_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (const std::string name = entry.path().filename(); name.starts_with("out.h5")) names.push_back(name);
    std::ranges::sort(names);
    return names;
  }

  std::vector<TextFile> files_;
  std::vector<std::int32_t> whole_;
  int documents_made_ = 0;
  Log info_{"test", LogLevel::info};
};

constexpr int kDocuments = 8;

TEST_F(PartialTexts, GoOnBehindTheLastDocumentWhereverTheyWereInterrupted) {
  for (int before = 1; before < kDocuments; ++before) {
    SCOPED_TRACE(before);
    made(before);
    EXPECT_THAT(names_of_partial_files(),
                testing::ElementsAre("out.h5.partial-record", "out.h5.partial-tokens"));
    testing::internal::CaptureStderr();
    EXPECT_EQ(made(), whole_);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(": " + std::to_string(before) + " document"));
    EXPECT_EQ(documents_made_, kDocuments - before);
    EXPECT_THAT(names_of_partial_files(), testing::IsEmpty());
  }
}

TEST_F(PartialTexts, GoOnAfterSeveralInterruptions) {
  made(2);
  made(3);  // documents more
  made(1);
  EXPECT_THAT(goes_on(kDocuments - 6),
              HasSubstr("goes on with file 3 of 4 behind its line 3: 6 documents and"));
  EXPECT_EQ(made(), whole_);
}

TEST_F(PartialTexts, LeaveNothingBeforeThereIsSomethingToGoOnFrom) {
  made(0);
  EXPECT_THAT(names_of_partial_files(), testing::IsEmpty());
}

TEST_F(PartialTexts, AreTakenWholeWhereTheyWereMadeAndNotWrittenYet) {
  const InterruptedTokenizer tokenizer(kAll);
  {
    PartialTokens partial(path("out.h5"), tokenizer.vocabulary(), "gpt2", info_, std::chrono::seconds(0));
    encode_texts(files_, tokenizer, tokenizer.end_of_text(), "text", partial, info_);
  }
  EXPECT_THAT(goes_on(0), HasSubstr("goes on behind the last file: 8 documents and "));
}

TEST_F(PartialTexts, AreKeptUpToTheFileThatHasChanged) {
  made(6);  // in the third of the files
  write("b.jsonl", "{\"text\":\"second, mended\"}\n");
  EXPECT_THAT(goes_on(1 + 3 + 1), AllOf(HasSubstr("goes on with file 2 of 4, since '"),
                                        HasSubstr("b.jsonl' is not what it was: 1 document and ")));
}

TEST_F(PartialTexts, AreKeptWhereFilesAreAddedOrLeftOut) {
  made(6);
  files_.push_back({write("e.txt", "added"), false});
  goes_on(3);
  made(6);
  files_.resize(2);
  EXPECT_THAT(goes_on(0), HasSubstr("goes on behind the last file: 4 documents and "));
}

TEST_F(PartialTexts, AreKeptUpToTheFileThatIsTakenForSomethingElse) {
  files_[1].has_json_lines = false;
  made(3);
  files_[1].has_json_lines = true;
  goes_on(kDocuments - 1);
}

TEST_F(PartialTexts, BeginAnewWhereTheFirstFileIsAnother) {
  made(6);
  std::filesystem::last_write_time(path("a.txt"), std::filesystem::file_time_type::clock::now());
  EXPECT_THAT(goes_on(kDocuments),
              HasSubstr("begins anew: '" + path("out.h5.partial-record").string() + "' is of other files"));
}

TEST_F(PartialTexts, BeginAnewWithAnotherTokenizer) {
  made(6);
  EXPECT_THAT(goes_on(kDocuments, "llama3"), HasSubstr("is of another tokenizer"));
}

TEST_F(PartialTexts, BeginAnewWhereTheirRecordIsDamaged) {
  const auto record = path("out.h5.partial-record");
  made(6);
  const std::string text = bytes_of_file(record);
  for (std::size_t at = 0; at < text.size(); at += 61) {
    made(6);
    std::string damaged = bytes_of_file(record);
    damaged[at] ^= 1;
    std::ofstream(record) << damaged;
    EXPECT_THAT(goes_on(kDocuments), HasSubstr("is damaged")) << at;
  }
  made(6);
  std::filesystem::resize_file(record, text.size() / 2);
  EXPECT_THAT(goes_on(kDocuments), HasSubstr("is damaged"));
}

TEST_F(PartialTexts, BeginAnewWithoutTheTokensThatTheirRecordTellsOf) {
  const auto tokens = path("out.h5.partial-tokens");
  made(6);
  std::filesystem::resize_file(tokens, std::filesystem::file_size(tokens) - 1);
  EXPECT_THAT(goes_on(kDocuments), HasSubstr("is of tokens that are not there"));
}

TEST_F(PartialTexts, LeaveOutWhatIsBehindTheirRecord) {
  made(6);
  std::ofstream(path("out.h5.partial-tokens"), std::ios::app) << "made, and not recorded";
  goes_on(kDocuments - 6);
}

TEST_F(PartialTexts, AreMadeByOneProcessAtATime) {
  const PartialTokens first(path("out.h5"), 1300, "gpt2", info_);
  EXPECT_THAT([&] { made(); },
              ThrowsMessage<Error>(HasSubstr("another process is writing '" + path("out.h5").string())));
}

TEST_F(PartialTexts, RemoveARecordThatWasNeverCompleted) {
  made(6);
  write("out.h5.partial-record.partial-01234567", "alpa");
  EXPECT_THAT(goes_on(kDocuments - 6), HasSubstr("which was never completed"));
  EXPECT_THAT(names_of_partial_files(), testing::IsEmpty());
}

}  // namespace
}  // namespace alpa
