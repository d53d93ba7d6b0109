#include "libalpa/tokenizer/pattern_syntax.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/split_pattern.h"
#include "libalpa/tokenizer/utf8.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> matches_of(const std::string& pattern, const std::string& text) {
  const SplitPattern compiled(pattern);
  PatternMatches matches(compiled);
  std::vector<std::string> found;
  for (std::size_t at = 0; matches.next(text, at, false) == PatternMatches::Found::match; at = matches.end())
    found.push_back(text.substr(matches.begin(), matches.end() - matches.begin()));
  return found;
}

TEST(PatternSyntax, HasUnicodesWhiteSpace) {
  const SplitPattern space(pcre2_pattern("\\s")), others(pcre2_pattern("[^\\s]")), same(pcre2_pattern("\\S")),
      in_class(pcre2_pattern("[\\S]"));
  PatternMatches is_space(space), is_other(others), is_same(same), is_in_class(in_class);
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (code == 0xd800) code = 0xe000;
    std::string text;
    append_utf8(code, text);
    const auto matched = [&](PatternMatches& matches) {
      return matches.next(text, 0, false) == PatternMatches::Found::match;
    };
    ASSERT_EQ(matched(is_space), is_white_space(code)) << std::hex << static_cast<std::uint32_t>(code);
    if (code > 0x4000) continue;  // far from all white space
    ASSERT_EQ(matched(is_other), !is_white_space(code)) << std::hex << static_cast<std::uint32_t>(code);
    ASSERT_EQ(matched(is_same), !is_white_space(code)) << std::hex << static_cast<std::uint32_t>(code);
    ASSERT_EQ(matched(is_in_class), !is_white_space(code)) << std::hex << static_cast<std::uint32_t>(code);
  }
}

TEST(PatternSyntax, HasTheOperatorsOfTokenizers) {
  EXPECT_THAT(matches_of(pcre2_pattern("(?i:'s|'ll)| ?\\p{L}+"), "It'S we'Ll"),
              ElementsAre("It", "'S", " we", "'Ll"));
  EXPECT_THAT(matches_of(pcre2_pattern("\\s+(?!\\S)|\\s+|[\\u4e00-\\u9fa5]+"), "  a  \u4e2d\u6587"),
              ElementsAre(" ", " ", " ", " ", "\u4e2d\u6587"));
  EXPECT_THAT(matches_of(literal_pattern("a.b|("), "axb a.b|("), ElementsAre("a.b|("));
}

TEST(PatternSyntax, RefusesWhatMayMeanSomethingElse) {
  const auto refuses = [](const std::string& pattern, const std::string& says) {
    EXPECT_THAT([&] { SplitPattern{pcre2_pattern(pattern)}; }, ThrowsMessage<Error>(HasSubstr(says)))
        << pattern;
  };
  refuses("\\h", "the escape '\\h'");
  refuses("\\w+", "the escape '\\w'");
  refuses("(a)\\1", "the escape '\\1'");
  refuses("(?s:.)", "the group '(?s:'");
  refuses("(*UTF)a", "'(*'");
  refuses("^a", "'^'");
  refuses("a(?!^)", "'^'");
  refuses("a{,3}", "'{,'");
  refuses("a{2}+", "'}+'");
  refuses("[a[b]]", "a class within a class");
  refuses("[a&&b]", "'&&'");
  refuses("[a", "a class without its ']'");
  refuses("a\\", "a '\\' at its end");
  refuses("\\p{Nonsense}", "is damaged near byte");
  refuses("(a", "is damaged near byte");
  refuses("a*", "matches nothing at all");
}

TEST(PatternSyntax, DecidesNoMatchThatMoreTextMayChange) {
  const SplitPattern words("[a-z]+|\\s+(?!\\S)|\\s");
  PatternMatches matches(words);
  using Found = PatternMatches::Found;
  EXPECT_EQ(matches.next("ab c", 0, true), Found::match);
  EXPECT_EQ(matches.end(), 2u);
  EXPECT_EQ(matches.next("ab c", 3, true), Found::more_decides);
  EXPECT_EQ(matches.next("ab  ", 2, true), Found::more_decides);
  EXPECT_EQ(matches.next("ab--", 2, true), Found::more_decides);
  EXPECT_EQ(matches.next("ab--", 2, false), Found::none);
}

}  // namespace
}  // namespace alpa
