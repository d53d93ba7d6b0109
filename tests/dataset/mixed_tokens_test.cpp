#include "libalpa/dataset/mixed_tokens.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/dataset/content_fingerprint.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Mix : public SmallSources {
 protected:
  /// One [[source]] for each text, named as its file.
  std::string source(const std::string& data, double weight, const std::string& more = "") const {
    return "[[source]]\ndata = \"" + data + "\"\nweight = " + std::to_string(weight) + "\n" + more + "\n";
  }

  std::string text_of(const TokenSource& tokens, std::int64_t first, std::int64_t count) const {
    std::vector<std::int32_t> read(static_cast<std::size_t>(count));
    tokens.read(first, read);
    return {read.begin(), read.end()};
  }

  std::string text_of(const TokenSource& tokens) const { return text_of(tokens, 0, tokens.size()); }

  /// A text of which each part of 64 bytes is its number.
  static std::string numbered(char kind, int parts) {
    std::string text;
    for (int i = 0; i < parts; ++i) {
      std::string part = kind + std::to_string(i);
      part.resize(64, ' ');
      text += part;
    }
    return text;
  }
};

TEST_F(Mix, HasTheSharesOfItsSourcesInEveryStretchAndEachTokenOnce) {
  write("a.txt", numbered('a', 60));
  write("folder/b.txt", numbered('b', 50));
  const auto mix = open_tokens(write("mix.toml", source("a.txt", 3) + source("folder/b.txt", 1)).string());
  EXPECT_EQ(mix->size(), 64 * 80) << "of a there are 60 parts, three quarters of which these are";
  std::map<char, int> count;
  for (std::int64_t part = 0; part < 80; ++part) {
    const char kind = text_of(*mix, 64 * part, 1)[0];
    const std::string number = std::to_string(count[kind]++);
    EXPECT_EQ(text_of(*mix, 64 * part + 1, std::ssize(number)), number);
    EXPECT_LE(std::abs(count['a'] - 0.75 * static_cast<double>(part + 1)), 1) << part;
  }
  EXPECT_THAT(mix->description(),
              AllOf(HasSubstr("mix.toml', 5120 tokens: 75.0 % of '"), HasSubstr("a.txt' (1 times"),
                    HasSubstr("b.txt' (0.4 times its tokens)")));
}

TEST_F(Mix, IsTheSameWhereverItIsRead) {
  write("a.txt", numbered('a', 1500));
  write("b.txt", numbered('b', 60));
  const auto mix =
      open_tokens(write("mix.toml", source("a.txt", 0.95) + source("b.txt", 0.05, "repeat = 2")).string());
  const std::string whole = text_of(*mix);
  EXPECT_GT(whole.size() / 64, 1500u) << "more than one round of 1000";
  for (const std::int64_t first : {0, 63, 64, 6399, 64000, 70001})
    EXPECT_EQ(text_of(*mix, first, 1000), whole.substr(static_cast<std::size_t>(first), 1000)) << first;
}

TEST_F(Mix, RepeatsWhatMayBeRepeated) {
  write("a.txt", numbered('a', 90));
  write("b.txt", numbered('b', 10));
  const auto mix =
      open_tokens(write("mix.toml", source("a.txt", 3) + source("b.txt", 1, "repeat = 3")).string());
  const std::string whole = text_of(*mix);
  EXPECT_EQ(whole.size(), 64u * 120);
  std::map<std::string, int> count;
  for (std::size_t part = 0; part < 120; ++part) ++count[whole.substr(64 * part, 4)];
  EXPECT_EQ(count["a7  "], 1);
  EXPECT_EQ(count["b7  "], 3);
  std::string of_b;
  for (std::size_t part = 0; part < 120; ++part)
    if (whole[64 * part] == 'b') of_b += whole[64 * part + 1];
  EXPECT_EQ(of_b, "012345678901234567890123456789");
}

/// Tokens 0, but for one.
class OneOther final : public TokenSource {
 public:
  explicit OneOther(std::int64_t size, std::int64_t other = -1) : size_(size), other_(other) {}
  std::int64_t size() const override { return size_; }
  void read(std::int64_t first, std::span<std::int32_t> into) const override {
    std::ranges::fill(into, 0);
    if (other_ >= first && other_ < first + std::ssize(into))
      into[static_cast<std::size_t>(other_ - first)] = 9;
  }
  std::string description() const override { return "all the same"; }

 private:
  std::int64_t size_, other_;
};

TEST_F(Mix, IsLookedThroughAndKnownByItsSmallPartsToo) {
  const auto with_other = [](std::int64_t other) {
    std::vector<MixedTokens::Part> parts;
    parts.push_back({std::make_unique<OneOther>(1 << 30), "large", 999, 1});
    parts.push_back({std::make_unique<OneOther>(1 << 20, other), "small", 1, 1});
    return MixedTokens("mix", std::move(parts));
  };
  EXPECT_NO_THROW(check_tokens(with_other(-1), 9));
  EXPECT_THAT([&] { check_tokens(with_other(1000), 9); }, ThrowsMessage<Error>(HasSubstr("token 1000 is 9")));
  EXPECT_EQ(content_fingerprint(with_other(1000)), content_fingerprint(with_other(1000)));
  EXPECT_NE(content_fingerprint(with_other(1000)), content_fingerprint(with_other(1'000'000)));
  EXPECT_NE(content_fingerprint(with_other(1000)), content_fingerprint(with_other(1001)));
}

TEST_F(Mix, NamesTheFilesThatItReads) {
  write("a.txt", "a");
  const auto file = write("mix.toml", source("a.txt", 1) + source("synthetic:100", 1));
  EXPECT_THAT(data_files(file.string()), testing::Contains(path("a.txt")));
  EXPECT_THAT(data_files(path("nowhere.toml").string()), testing::ElementsAre(path("nowhere.toml")));
}

TEST_F(Mix, RefusesWhatIsNone) {
  write("a.txt", numbered('a', 10));
  const auto refuses = [&](const std::string& toml, const std::string& says) {
    const auto file = write("mix.toml", toml);
    EXPECT_THAT([&] { open_tokens(file.string()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("mix.toml"), HasSubstr(says))));
  };
  refuses("# none\n", "expected TOML");
  refuses("[other]\n", "expected a table [[source]] for each source");
  refuses(source("a.txt", 0), "more than 0");
  refuses(source("a.txt", 1, "repeat = 0"), "from 1 to");
  refuses(source("a.txt", 1, "wieght = 2"), "wieght");
  refuses(source("mix.toml", 1), "a mix within a mix");
  refuses(source("a.txt", 10000) + source("synthetic:100", 1), "less than a thousandth");
  refuses(source("a.txt", 1) + source("a.txt", 100), "too few tokens to be mixed");
  const auto made_by = [&](const std::string& name, const std::string& tokenizer) {
    H5RowsWriter file(path(name), "alpa-data", "1.0");
    const int tokens = file.declare("/tokens", RowsType::u8, {64}),
              kept = file.declare("/tokenizer", RowsType::u8, {std::ssize(tokenizer)});
    file.append(tokens, 64, std::string(64, 'a').data());
    file.append(kept, std::ssize(tokenizer), tokenizer.data());
    file.publish();
  };
  made_by("x.h5", "bytes");
  made_by("y.h5", "{}");
  refuses(source("x.h5", 1) + source("a.txt", 1) + source("y.h5", 1), "were made by different tokenizers");
  refuses(source("y.h5", 1) + source("a.txt", 1), "were made by different tokenizers");
}

}  // namespace
}  // namespace alpa
