#include "libalpa/base/toml_bounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

/// Walks over the text once, skipping strings and comments, and counts levels. Where the text breaks
/// TOML's rules it errs on the side of counting more.
class NestingScan {
 public:
  NestingScan(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

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
        step(c);
    }
  }

 private:
  void step(char c) {
    switch (c) {
      case '[':
      case '{':
        open();
        break;
      case ']':
      case '}':
        close();
        break;
      case '.':
        ++dots_;
        break;
      case ',':
        dots_ = 0;
        break;
      case '\n':
        end_of_line();
        break;
      default:
        break;
    }
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') line_is_blank_ = false;
    ++at_;
    const int levels = header_levels_ + open_levels_ + dots_;
    if (levels > kTomlMaxNesting)
      throw Error(ErrorKind::input, fmt::format("{}:{}:{}: nested more than {} levels deep", file_name_,
                                                line_, at_ - line_begin_, kTomlMaxNesting));
  }

  void open() {
    if (line_is_blank_ && levels_per_bracket_.empty()) {
      in_header_ = true;
      header_levels_ = 0;
    }
    levels_per_bracket_.push_back(1 + dots_);
    open_levels_ += 1 + dots_;
    dots_ = 0;
  }

  void close() {
    if (in_header_) header_levels_ = std::max(header_levels_, open_levels_ + dots_);
    dots_ = 0;
    if (levels_per_bracket_.empty()) return;
    open_levels_ -= levels_per_bracket_.back();
    levels_per_bracket_.pop_back();
    if (levels_per_bracket_.empty()) in_header_ = false;
  }

  void end_of_line() {
    count_line();
    dots_ = 0;
    line_is_blank_ = true;
  }

  bool three_quotes(char quote) const {
    return at_ + 2 < text_.size() && text_[at_] == quote && text_[at_ + 1] == quote &&
           text_[at_ + 2] == quote;
  }

  void skip_string(char quote) {
    line_is_blank_ = false;
    const bool multi_line = three_quotes(quote);
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !multi_line) return;  // unterminated; the parser will say so
      if (c == quote && (!multi_line || three_quotes(quote))) {
        at_ += multi_line ? 3 : 1;
        // A multi-line string may end in up to two quotes of its own.
        for (int extra = 0; multi_line && extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra)
          ++at_;
        return;
      }
      if (c == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      if (text_[at_] == '\n') count_line();
      ++at_;
    }
  }

  void count_line() {
    ++line_;
    line_begin_ = at_ + 1;
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  std::string_view text_;
  const std::string& file_name_;
  std::size_t at_ = 0, line_begin_ = 0;
  std::int64_t line_ = 1;
  bool line_is_blank_ = true, in_header_ = false;
  int header_levels_ = 0, open_levels_ = 0, dots_ = 0;
  std::vector<int> levels_per_bracket_;
};

}  // namespace

void check_toml_bounds(std::string_view text, const std::string& file_name) {
  if (text.size() > kTomlMaxBytes)
    throw Error(ErrorKind::input, fmt::format("{}: larger than {} bytes, which no TOML file of this suite is",
                                              file_name, kTomlMaxBytes));
  NestingScan(text, file_name).run();
}

}  // namespace alpa
