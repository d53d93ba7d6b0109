// Texts through tokenizers into files that say what made them.
#include <gmock/gmock.h>

#include <functional>

#include "libalpa/base/error.h"
#include "libalpa/dataset/convert.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/h5/file.h"
#include "libalpa/tokenizer/tokenizer.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::Throws;
using testing::ThrowsMessage;

const std::string gpt2 = ALPA_SOURCE_DIR "/tests/reference/tokenizers/gpt2.json";
const std::string llama3 = ALPA_SOURCE_DIR "/tests/reference/tokenizers/llama3.json";

class ConvertTexts : public SmallSources {
 protected:
  /// Converts to out.h5, with `tokenizer` and what `change` does to the settings.
  void run(std::vector<std::filesystem::path> sources, const std::string& tokenizer = gpt2,
           const std::function<void(ConvertSettings&)>& change = {}) {
    ConvertSettings settings;
    settings.sources = std::move(sources);
    settings.out = path("out.h5");
    settings.tokenizer = tokenizer;
    if (change) change(settings);
    convert(settings, {"as tested", "test", "", "", "", "", ""}, log_);
  }

  void refuses(std::vector<std::filesystem::path> sources, const std::string& says,
               const std::string& tokenizer = gpt2,
               const std::function<void(ConvertSettings&)>& change = {}) {
    EXPECT_THAT([&] { run(sources, tokenizer, change); }, ThrowsMessage<Error>(HasSubstr(says)));
  }

  std::vector<std::int32_t> tokens(const std::string& name = "out.h5") const {
    const auto source = open_tokens(path(name).string());
    std::vector<std::int32_t> read(static_cast<std::size_t>(source->size()));
    source->read(0, read);
    return read;
  }

  /// What the file says by itself, with "|" for the end of a text.
  std::string text(const std::string& name = "out.h5") const {
    const auto tokenizer = open_tokenizer(path(name).string());
    std::string all;
    for (const std::int32_t token : tokens(name))
      all += token == tokenizer->end_of_text() ? "|" : tokenizer->decode({{token}});
    return all;
  }
};

TEST_F(ConvertTexts, MakesTokensAndKeepsTheTokenizer) {
  run({write("a.txt", "In the beginning")});
  EXPECT_EQ(text(), "In the beginning|");
  EXPECT_LT(tokens().size(), 10u);
  const H5Reader file(path("out.h5"), "alpa-data", "1.0");
  EXPECT_EQ(file.text_attribute("/tokenizer", "description"), "byte-level BPE, 1300 tokens");
  EXPECT_EQ(file.int64_attribute("/tokenizer", "vocabulary"), 1300);
  EXPECT_EQ(file.int64_attribute("/tokenizer", "end_of_text"), 0);
}

TEST_F(ConvertTexts, KeepsBytesWithoutATokenizer) {
  run({write("a.txt", "a\xff")}, "");
  EXPECT_THAT(tokens(), ElementsAre('a', 255));
  EXPECT_EQ(open_tokenizer(path("out.h5").string())->description(), "bytes");
}

TEST_F(ConvertTexts, TakesSeveralSourcesInTheirOrderAndFoldersInTheirs) {
  write("folder/b/z.txt", "fourth");
  write("folder/b/.hidden", "never");
  write("folder/a.jsonl", "{\"text\":\"second\"}\n\n{\"id\":3,\"text\":\"third\"}\n");
  write("folder/photo", std::string("\x89PNG\0", 5));
  const auto first = write("first.txt", "first");
  run({first, path("folder"), write_compressed("last.gz", "last")});
  EXPECT_EQ(text(), "first|second|third|fourth|last|");
}

TEST_F(ConvertTexts, KnowsJsonLinesBehindAMarkOrBlankLines) {
  run({write("a.jsonl", "\xef\xbb\xbf{\"text\":\"one\"}\n{\"text\":\"two\"}\n"),
       write("b.jsonl", "\n \n{\"text\":\"three\"}\n")});
  EXPECT_EQ(text(), "one|two|three|");
}

TEST_F(ConvertTexts, KnowsAFolderOfTextsFromOneOfImages) {
  write("texts/a.txt", "a rose");
  run({path("texts")}, "");
  EXPECT_EQ(text(), "a rose");
  write("pets/cat/a.pgm", "P5 1 1 255\na");
  run({path("pets")}, "");
  EXPECT_TRUE(H5Reader(path("out.h5"), "alpa-data", "1.0").has("/images"));
}

TEST_F(ConvertTexts, GivesTheSameEachTimeAndHoldsOutTheEnd) {
  const auto source = write("a.txt", "abc");
  const auto hold_out = [](ConvertSettings& s) { s.hold_out = 0.5; };
  run({source, source}, "bytes", hold_out);
  EXPECT_EQ(text() + text("out-held-out.h5"), "abcabc");
  const auto before = tokens();
  run({source, source}, "bytes", hold_out);
  EXPECT_EQ(tokens(), before);
  EXPECT_EQ(tokens("out-held-out.h5").size(), 3u);
}

TEST_F(ConvertTexts, PutsWhatIsAskedForBehindDocuments) {
  const auto lines = write("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"\"}\n{\"text\":\"b<|eot_id|>\"}\n");
  run({lines}, llama3);
  EXPECT_EQ(text(), "a|b<|eot_id|>|");
  run({lines}, llama3, [](ConvertSettings& s) { s.end_of_text = "none"; });
  EXPECT_EQ(text(), "ab<|eot_id|>");
  run({lines}, llama3, [](ConvertSettings& s) { s.end_of_text = "<|eot_id|>"; });
  EXPECT_EQ(tokens()[1], *open_tokenizer(llama3)->special_token("<|eot_id|>"));
  const TokenizerFile of_llama = read_tokenizer_file(path("out.h5").string());
  EXPECT_EQ(end_of_text(of_llama, *make_tokenizer(of_llama)),
            make_tokenizer(of_llama)->special_token("<|eot_id|>"))
      << "what reads the tokens knows it";
  run({lines}, "bytes", [](ConvertSettings& s) { s.end_of_text = "0"; });
  EXPECT_EQ(text(), std::string("a\0b<|eot_id|>\0", 14));
  refuses({lines}, "--end-of-text 'a' is neither a special token of the tokenizer (bytes) nor an id", "bytes",
          [](ConvertSettings& s) { s.end_of_text = "a"; });
  refuses({lines}, "nor an id", "bytes", [](ConvertSettings& s) { s.end_of_text = "256"; });
}

TEST_F(ConvertTexts, TakesTheFieldThatIsAskedFor) {
  run({write("a.jsonl",
             "{\"text\":\"a\",\"meta\":{\"title\":[\"x\"]},\"title\":\"\\u00fc \\ud83d\\ude00\"}\r\n")},
      gpt2, [](ConvertSettings& s) { s.field = "title"; });
  EXPECT_EQ(text(), "\u00fc \U0001f600|");
}

TEST_F(ConvertTexts, RefusesLinesWithoutATextByTheirNumber) {
  const struct {
    const char *line, *says;
  } table[] = {{"{\"id\":1}", "no field 'text'"},
               {"{\"meta\":{\"text\":\"a\"}}", "no field 'text'"},
               {"{\"text\":5}", "field 'text' is a number, no text"},
               {"{\"text\":null}", "field 'text' is null, no text"},
               {"{\"text\":[\"a\"]}", "field 'text' is an array, no text"},
               {"{\"text\":{\"text\":\"a\"}}", "field 'text' is an object, no text"},
               {"{\"text\":\"a\",\"text\":\"b\"}", "field 'text' twice"},
               {"[\"text\"]", "an array, no object"},
               {"\"text\"", "a text, no object"},
               {"{\"text\":\"a\"", "no JSON from its byte "},
               {"{\"text\":\"\xff\"}", "no JSON from its byte "},
               {"{\"text\":\"a\"} b", "no JSON from its byte "}};
  for (const auto& [line, says] : table) {
    const auto lines = write("bad.jsonl", "{\"text\":\"good\"}\n\n" + std::string(line) + "\n");
    EXPECT_THAT([&] { run({lines}); },
                ThrowsMessage<Error>(AllOf(HasSubstr("bad.jsonl', line 3: "), HasSubstr(says))));
  }
  refuses({write("deep.jsonl", "{\"text\":\"a\"}\n" + std::string(1 << 20, '['))},
          "line 2: an array, no object");
  EXPECT_FALSE(std::filesystem::exists(path("out.h5")));
}

TEST_F(ConvertTexts, RefusesWhatIsNoTextAndSaysWhatItTookItFor) {
  const auto text = write("a.txt", "a");
  const auto parquet = write("b.txt", "PAR1 and more");
  refuses({text, parquet}, "b.txt' is not text: it seems to be a Parquet file");
  write("folder/c", "PAR1 and more");
  refuses({path("folder")}, "there is no text in '");
  refuses({text, path("nowhere.txt")}, "nowhere.txt': No such file");
  refuses({write("empty.jsonl", "{\"text\":\"\"}\n")}, "empty.jsonl' is empty");
  refuses({text, text}, "a.txt' and 1 other: only texts may be several", "",
          [](ConvertSettings& s) { s.from = SourceKind::csv; });
  refuses({write("labels-idx1", idx({2}, "ab"))}, "--tokenizer is for texts and tokens");
  run({text, parquet}, "bytes", [](ConvertSettings& s) { s.from = SourceKind::text; });
  EXPECT_EQ(this->text(), "aPAR1 and more");
}

TEST_F(ConvertTexts, RefusesSettingsWithoutEffect) {
  const auto text = write("a.txt", "a");
  const auto table = write("a.csv", "1,2\n");
  H5Writer file(path("bare.h5"), "any", "1.0");
  file.column("/tokens", std::vector<std::int64_t>{65, 66}, "1");
  file.publish();
  const auto title = [](ConvertSettings& s) { s.field = "title"; };
  const auto none = [](ConvertSettings& s) { s.end_of_text = "none"; };
  for (const auto& source : {text, table, path("bare.h5")})
    refuses({source}, "--field has no effect: '" + source.string() + "' holds no JSON lines", "", title);
  refuses({table}, "a.csv' holds no texts", "", none);
  refuses({path("bare.h5")}, "bare.h5' holds tokens without their tokenizer", "", none);
  EXPECT_THAT([&] { run({table}, "", none); }, Throws<Error>(Property(&Error::kind, ErrorKind::usage)));
  run({text, write("b.jsonl", "{\"title\":\"b\"}\n")}, gpt2, title);
  EXPECT_EQ(this->text(), "a|b|");
  run({path("bare.h5")}, "bytes", [](ConvertSettings& s) { s.end_of_text = "66"; });
  EXPECT_EQ(read_tokenizer_file(path("out.h5").string()).end_of_text, 66);
}

TEST_F(ConvertTexts, OfTokensKeepsOrTakesWhatMadeThem) {
  run({write("a.txt", "In the beginning")});
  std::filesystem::rename(path("out.h5"), path("made.h5"));
  run({path("made.h5")}, "");
  EXPECT_EQ(text(), "In the beginning|");
  H5Writer file(path("bare.h5"), "any", "1.0");
  file.column("/tokens", std::vector<std::int64_t>{65, 66, 1299}, "1");
  file.publish();
  run({path("bare.h5")});
  EXPECT_EQ(text(), open_tokenizer(gpt2)->decode({{65, 66, 1299}}));
  refuses({path("bare.h5")}, "ids up to 1299, and the tokenizer 'bytes' has ids below 256", "bytes");
}

}  // namespace
}  // namespace alpa
