#include "libalpa/tokenizer/pattern_syntax.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"

namespace alpa {
namespace {

/// is_white_space() as parts of a class, and all other characters.
constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view no_white_space =
    R"(\x00-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

/// What may follow "(?".
constexpr std::array<std::string_view, 7> groups{":", "=", "!", ">", "i:", "<=", "<!"};

class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : left_(pattern) {}

  std::string translated() {
    while (!left_.empty()) {
      if (left_.starts_with('\\'))
        escape();
      else if (left_.starts_with('['))
        character_class();
      else if (left_.starts_with('('))
        group();
      else if (left_.starts_with('^'))
        refuse("'^', which depends on where a text is cut");
      else if (left_.starts_with("{,"))
        refuse("'{,', which is a repetition there alone");
      else if (left_.starts_with("}+"))
        refuse("'}+', which is no possessive repetition there");
      else
        copy(1);
    }
    return std::move(text_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("a regular expression has {}", what),
                "a tokenizer of GPT-2's, Llama 3's or Qwen's form");
  }

  void copy(std::size_t bytes) {
    text_ += left_.substr(0, bytes);
    left_.remove_prefix(std::min(bytes, left_.size()));
  }

  void escape() {
    if (left_.size() < 2) refuse("a '\\' at its end");
    const char kind = left_[1];
    if (kind == 's' || kind == 'S') {
      const std::string_view set = kind == 's' ? white_space : no_white_space;
      text_ += in_class_ ? std::string(set) : fmt::format("[{}]", set);
      left_.remove_prefix(2);
    } else if (kind == 'p' || kind == 'P') {
      const std::size_t end = left_.find('}');
      if (left_.size() < 3 || left_[2] != '{' || end == std::string_view::npos)
        refuse(fmt::format("'\\{}' without a name in braces", kind));
      copy(end + 1);
    } else if (kind == 'u') {
      const std::string_view digits = left_.substr(2, 4);
      if (digits.size() < 4 ||
          !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c); }))
        refuse("'\\u' without four hexadecimal digits");
      text_ += fmt::format("\\x{{{}}}", digits);
      left_.remove_prefix(6);
    } else if (std::isalnum(static_cast<unsigned char>(kind)) &&
               std::string_view("dDrntfx").find(kind) == std::string_view::npos) {
      refuse(fmt::format("the escape '\\{}', which is not supported", kind));
    } else {
      copy(2);
    }
  }

  void character_class() {
    copy(left_.starts_with("[^") ? 2 : 1);
    in_class_ = true;
    if (left_.starts_with(']')) refuse("a class that begins with ']'");
    while (!left_.starts_with(']')) {
      if (left_.empty()) refuse("a class without its ']'");
      if (left_.starts_with('[')) refuse("a class within a class");
      if (left_.starts_with("&&")) refuse("'&&' within a class");
      if (left_.starts_with('\\'))
        escape();
      else
        copy(1);
    }
    in_class_ = false;
    copy(1);
  }

  void group() {
    if (left_.starts_with("(*")) refuse("'(*'");
    if (left_.starts_with("(?") && std::none_of(groups.begin(), groups.end(), [&](std::string_view known) {
          return left_.substr(2).starts_with(known);
        }))
      refuse(fmt::format("the group '{}', which is not supported", printable(left_.substr(0, 4))));
    copy(1);
  }

  std::string_view left_;
  std::string text_;
  bool in_class_ = false;
};

}  // namespace

std::string pcre2_pattern(std::string_view onig_pattern) { return PatternReader(onig_pattern).translated(); }

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte))
      pattern += fmt::format("\\x{:02x}", byte);
    else
      pattern.push_back(c);
  }
  return pattern;
}

}  // namespace alpa
