#include "libalpa/dataset/token_source.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/h5/file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using namespace std::string_literals;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class... Values>
std::string packed(Values... values) {
  std::string bytes;
  const auto append = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  (append(values), ...);
  return bytes;
}

std::string llmc_header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::string header = packed(magic, version, tokens);
  header.resize(1024, '\0');
  return header;
}

/// Two documents: {1, 2, 300} and {4}, as 16-bit tokens.
std::string megatron_index(std::uint8_t code = 8, std::int64_t last_place = 6) {
  return std::string("MMIDIDX\0\0", 9) + packed(std::uint64_t{1}, code, std::int64_t{2}, std::int64_t{3}) +
         packed(std::int32_t{3}, std::int32_t{1}) + packed(std::int64_t{0}, last_place) +
         packed(std::int64_t{0}, std::int64_t{1}, std::int64_t{2});
}
const std::string megatron_tokens =
    packed(std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{300}, std::uint16_t{4});

std::vector<std::int32_t> tokens(const TokenSource& source, std::int64_t first, std::size_t count) {
  std::vector<std::int32_t> read(count);
  source.read(first, read);
  return read;
}

class Tokens : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::vector<std::int32_t> all_of(const std::string& data) const {
    const auto source = open_tokens(data);
    return tokens(*source, 0, static_cast<std::size_t>(source->size()));
  }

  TemporaryFolder folder_;
};

TEST_F(Tokens, OfATextAreItsBytes) {
  const auto source = open_tokens(file("poem.txt", "a rose\xff"));
  EXPECT_EQ(source->size(), 7);
  EXPECT_THAT(tokens(*source, 4, 3), ElementsAre('s', 'e', 255));
  EXPECT_THAT(source->description(), HasSubstr("poem.txt', 7 tokens (its bytes)"));
}

TEST_F(Tokens, OfLlmcHave16Or32Bits) {
  EXPECT_THAT(all_of(file("gpt2.bin", llmc_header(20240520, 1, 3) +
                                          packed(std::uint16_t{50256}, std::uint16_t{0}, std::uint16_t{7}))),
              ElementsAre(50256, 0, 7));
  EXPECT_THAT(
      all_of(file("llama", llmc_header(20240801, 7, 2) + packed(std::uint32_t{128000}, std::uint32_t{9}))),
      ElementsAre(128000, 9));
}

TEST_F(Tokens, OfMegatronAreFoundByAnyOfTheirThreeNames) {
  file("wiki.idx", megatron_index());
  file("wiki.bin", megatron_tokens);
  for (const char* name : {"wiki", "wiki.bin", "wiki.idx"})
    EXPECT_THAT(all_of(path(name)), ElementsAre(1, 2, 300, 4)) << name;
}

TEST_F(Tokens, OfMegatronHaveTheTypeThatTheIndexNames) {
  file("wide.idx", megatron_index(5, 24));
  EXPECT_THAT(all_of(file("wide.bin",
                          packed(std::int64_t{1}, std::int64_t{-2}, std::int64_t{1} << 40, std::int64_t{4}))),
              ElementsAre(1, -2, INT32_MAX, 4));
}

TEST_F(Tokens, OfHdf5AreTheDatasetTokens) {
  H5Writer writer(path("data"), "any", "1.0");
  writer.column("/tokens", std::vector<std::int32_t>{5, 6, 70000}, "1");
  writer.publish();
  const auto source = open_tokens(path("data"));
  EXPECT_THAT(tokens(*source, 1, 2), ElementsAre(6, 70000));
  EXPECT_THAT(source->description(), AllOf(HasSubstr("HDF5"), HasSubstr("3 tokens")));
}

TEST_F(Tokens, SyntheticAreTheSameWhereverOneStartsToRead) {
  const auto source = open_tokens("synthetic:100:5000");
  EXPECT_EQ(source->size(), 5000);
  const auto whole = tokens(*source, 0, 5000);
  for (const std::int64_t first : {1, 7, 8, 63, 4990})
    EXPECT_EQ(tokens(*source, first, 10),
              std::vector<std::int32_t>(whole.begin() + first, whole.begin() + first + 10));
  EXPECT_EQ(open_tokens("synthetic:100")->size(), 1 << 24);
}

TEST_F(Tokens, SyntheticAreEvenlyDrawnAndEverySecondFollows) {
  const auto drawn = tokens(*open_tokens("synthetic:10:100000"), 0, 100'000);
  std::vector<int> counts(10);
  for (std::size_t i = 0; i < drawn.size(); i += 2) {
    EXPECT_EQ(drawn[i + 1], (drawn[i] + 1) % 10);
    ++counts[drawn[i]];
  }
  // Binomial with mean 5000 and standard deviation 67: five of them.
  for (const int count : counts) EXPECT_NEAR(count, 5000, 335);
}

TEST_F(Tokens, AreNoBytesOfWhatIsNoText) {
  const std::pair<std::string, std::string> table[] = {
      {"PAR1\x15\x04", "a Parquet file"},
      {"ARROW1\0\0"s, "an Arrow file"},
      {"PK\x03\x04\x14", "a ZIP archive"},
      {"\x93NUMPY\x01", "a NumPy array"},
      {"\x1f\x8b\x08", "a gzip file"},
      {"\x28\xb5\x2f\xfd", "a zstd file"},
      {"%PDF-1.7", "a PDF"},
      {"\x40\0\0\0\0\0\0\0{\"a\""s, "a safetensors file"},
      {"\xff\xfe\0a"s, "text of 16 bits a character"},
      {"a rose\0"s, "binary (byte 6 is 0)"},
      {"{\"text\": \"a rose\"}\n{\"text\": \"is\"}\n", "JSON lines"},
      {"  { \"text\" : 1 } \r\n", "JSON lines"},
      {"{\"text\": \"" + std::string(5000, 'a') + "\"}\n", "JSON lines"}};
  for (const auto& [bytes, kind] : table)
    EXPECT_THAT(
        ([&, bytes = bytes] { open_tokens(file("data", bytes)); }),
        ThrowsMessage<Error>(AllOf(HasSubstr("data' is not text: it seems to be " + kind),
                                   HasSubstr("alpa-train convert --from text takes the bytes of any file"))))
        << kind;
  for (const std::string& text :
       {"{\n  \"a\": 1\n}\n"s, "{this}\n"s, "{\"quoted\" and said\n"s, "\xff\xe4\n"s, "PAR 1\n"s})
    EXPECT_EQ(open_tokens(file("data", text))->size(), std::ssize(text)) << text;
}

struct BadData {
  const char* name;
  std::string bytes;
  std::string says;
};

TEST_F(Tokens, DamagedOrUnknownFilesAreRefusedWithTheReason) {
  file("short.bin", megatron_tokens.substr(0, 6));
  file("half.bin", megatron_tokens);
  file("floats.bin", megatron_tokens);
  const BadData table[] = {
      {"empty.txt", "", "is empty"},
      {"mystery.bin", "0123456789", "cannot find out what"},
      {"cut.bin", packed(std::int32_t{20240520}), "the header of llm.c has 1024"},
      {"few.bin", llmc_header(20240520, 1, 3) + "abcd",
       "promises 3 tokens (1030 bytes), but it has 1028 bytes"},
      {"negative.bin", llmc_header(20240520, 1, -1), "promises -1 tokens"},
      {"old.bin", llmc_header(20240520, 2, 0), "of version 2, but version 1 is what is read"},
      {"short.idx", megatron_index(), "does not end with the 6 bytes"},
      {"half.idx", megatron_index().substr(0, 40), "do not hold 2 sequences and 3 document ends"},
      {"floats.idx", megatron_index(7), "type code 7"},
      {"lonely.idx", megatron_index(), "lonely.bin': No such file"},
      {"fake.h5", "\x89HDF\r\n\x1a\nnot really", "truncated or damaged"},
  };
  for (const BadData& bad : table)
    EXPECT_THAT([&] { open_tokens(file(bad.name, bad.bytes)); }, ThrowsMessage<Error>(HasSubstr(bad.says)))
        << bad.name;
}

TEST_F(Tokens, MissingDataIsAnInputError) {
  try {
    open_tokens(path("nowhere.txt"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_THAT(error.what(), HasSubstr("nowhere.txt': No such file or directory"));
  }
  EXPECT_THAT([&] { open_tokens(folder_.path().string()); },
              ThrowsMessage<Error>(HasSubstr("it is a folder")));
  for (const char* data : {"synthetic:", "synthetic:1", "synthetic:9:", "synthetic:9:0", "synthetic:9:5x"})
    EXPECT_THAT([&] { open_tokens(data); }, ThrowsMessage<Error>(HasSubstr("synthetic:VOCABULARY[:LENGTH]")));
}

TEST_F(Tokens, CheckNamesTheFirstIdBeyondTheVocabulary) {
  const auto source = open_tokens(file("poem.txt", "aaaazaza"));
  EXPECT_NO_THROW(check_tokens(*source, 'z' + 1));
  EXPECT_THAT(
      [&] { check_tokens(*source, 'z'); },
      ThrowsMessage<Error>(HasSubstr("token 4 is 122, but the ids that the model takes are 0 to 121")));
}

/// 2^27 tokens 0, but from `bad` on 9.
class LongTokens final : public TokenSource {
 public:
  explicit LongTokens(std::int64_t bad) : bad_(bad) {}
  std::int64_t size() const override { return std::int64_t{1} << 27; }
  void read(std::int64_t first, std::span<std::int32_t> into) const override {
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] = first + static_cast<std::int64_t>(i) < bad_ ? 0 : 9;
  }
  std::string description() const override { return "long"; }

 private:
  std::int64_t bad_;
};

TEST_F(Tokens, CheckOfALongRowReachesItsEnd) {
  const std::int64_t last = (std::int64_t{1} << 27) - 1;
  EXPECT_THAT([&] { check_tokens(LongTokens(last), 9); },
              ThrowsMessage<Error>(HasSubstr("token 134217727 is 9")));
}

}  // namespace
}  // namespace alpa
