#include "libalpa/base/toml_bounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

bool is_bare_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Walks over the text once, stepping over strings and comments, and counts levels. Where the text breaks
/// TOML's rules it errs on the side of counting more.
class BoundsScan {
 public:
  BoundsScan(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  void run() {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'')
        skip_string(c);
      else if (c == '#')
        skip_comment();
      else
        count_structure(c);
    }
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  [[noreturn]] void refuse(const std::string& why) const {
    const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    const std::string_view line = text_.substr(line_begin_, at_ - line_begin_);
    throw Error(ErrorKind::input,
                fmt::format("{}:{}:{}: {}", file_name_, line_,
                            1 + std::count_if(line.begin(), line.end(), is_first_byte), why));
  }

  /// Moves over one character, whatever it means.
  void advance() {
    const char c = text_[at_];
    ++at_;
    if (c == '\n') {
      ++line_;
      line_begin_ = at_;
    }
  }

  void count_structure(char c) {
    if (in_header_ && c == '.' && last_ == '[') refuse("expected the name of a table");
    if (in_header_ && c == '\n') refuse("expected ']', which ends the name of a table");
    if (in_header_ && c != ' ' && c != '\t' && c != '.' && c != '[' && c != ']' && !is_bare_key(c))
      refuse("expected the name of a table");
    switch (c) {
      case '[':
      case '{':
        open(c);
        break;
      case ']':
      case '}':
        close(c);
        break;
      case '.':
        ++dots_;
        break;
      case ',':
      case '\n':
        dots_ = 0;
        break;
      default:
        break;
    }
    if (c == '\n')
      line_is_blank_ = true;
    else if (c != ' ' && c != '\t')
      line_is_blank_ = false;
    if (c != ' ' && c != '\t') last_ = c;
    if (header_levels_ + open_levels_ + dots_ > kTomlMaxNesting)
      refuse(fmt::format("nested more than {} levels deep", kTomlMaxNesting));
    advance();
  }

  void open(char bracket) {
    if (line_is_blank_ && open_.empty()) {
      in_header_ = true;
      header_levels_ = 0;
    }
    if (in_header_ && open_.size() == 2) refuse("a table header has one bracket or two");
    open_.push_back({bracket, 1 + dots_});
    open_levels_ += 1 + dots_;
    dots_ = 0;
  }

  void close(char bracket) {
    if (open_.empty() || open_.back().bracket != (bracket == ']' ? '[' : '{'))
      refuse(fmt::format("'{}' closes nothing that is open", bracket));
    if (in_header_) header_levels_ = std::max(header_levels_, open_levels_ + dots_);
    dots_ = 0;
    open_levels_ -= open_.back().levels;
    open_.pop_back();
    if (open_.empty()) in_header_ = false;
  }

  bool three_quotes(char quote) const { return peek(0) == quote && peek(1) == quote && peek(2) == quote; }

  void skip_string(char quote) {
    line_is_blank_ = false;
    last_ = quote;
    const bool multi_line = three_quotes(quote);
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !multi_line) return;  // unterminated; the parser will say so
      if (c == quote && (!multi_line || three_quotes(quote))) {
        at_ += multi_line ? 3 : 1;
        // A multi-line string may end in up to two quotes of its own.
        for (int extra = 0; multi_line && extra < 2 && peek(0) == quote; ++extra) ++at_;
        return;
      }
      advance();
      if (c == '\\' && quote == '"' && at_ < text_.size() && peek(0) != '\n') advance();
    }
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') advance();
  }

  std::string_view text_;
  const std::string& file_name_;
  std::size_t at_ = 0, line_begin_ = 0;
  std::int64_t line_ = 1;
  char last_ = '\n';  ///< that is no blank, outside strings and comments
  bool line_is_blank_ = true, in_header_ = false;
  int header_levels_ = 0, open_levels_ = 0, dots_ = 0;
  struct Bracket {
    char bracket;
    int levels;  ///< that it adds: its own and those of the dotted key before it
  };
  std::vector<Bracket> open_;
};

}  // namespace

void check_toml_bounds(std::string_view text, const std::string& file_name) {
  if (text.size() > kTomlMaxBytes)
    throw Error(ErrorKind::input,
                fmt::format("{}: larger than {} bytes, which no TOML file of this suite is", file_name,
                            kTomlMaxBytes),
                "check the path");
  BoundsScan(text, file_name).run();
}

}  // namespace alpa
