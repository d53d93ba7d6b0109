#include "libalpa/model/expression.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr std::size_t kMaxLength = 1000;
constexpr int kMaxDepth = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Reads by recursive descent. Without numbers for the names it checks the syntax and collects the names.
class ExpressionReader {
 public:
  ExpressionReader(const std::string& text, const Numbers* numbers) : text_(text), numbers_(numbers) {}

  Number read() {
    if (text_.size() > kMaxLength)
      throw Error(ErrorKind::input, fmt::format("expression is longer than {} characters", kMaxLength));
    const Number value = sum();
    if (at_ < text_.size()) refuse(fmt::format("expected an operator, found '{}'", text_[at_]));
    return value;
  }

  std::vector<std::string> names;

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::input, fmt::format("in '{}' at character {}: {}", text_, at_ + 1, why));
  }

  [[noreturn]] void refuse_value(const std::string& why) const {
    throw Error(ErrorKind::input, fmt::format("in '{}': {}", text_, why));
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void deepen() {
    if (++depth_ > kMaxDepth) refuse(fmt::format("nested more than {} levels deep", kMaxDepth));
  }

  Number sum() {
    deepen();
    Number value = product();
    for (char c = peek(); c == '+' || c == '-'; c = peek()) {
      ++at_;
      value = combined(value, c, product());
    }
    --depth_;
    return value;
  }

  Number product() {
    Number value = atom();
    for (char c = peek(); c == '*' || c == '/'; c = peek()) {
      ++at_;
      value = combined(value, c, atom());
    }
    return value;
  }

  Number atom() {
    const char c = peek();
    if (c == '-') {
      ++at_;
      deepen();
      const Number value = combined(Number::of(std::int64_t{0}), '-', atom());
      --depth_;
      return value;
    }
    if (c == '(') return in_parentheses();
    if (is_digit(c) || c == '.') return literal();
    if (is_letter(c)) return named();
    if (c == '\0') refuse("expected a number or a name, found the end");
    refuse(fmt::format("expected a number or a name, found '{}'", c));
  }

  Number in_parentheses() {
    ++at_;
    const Number value = sum();
    if (peek() != ')') refuse("expected ')'");
    ++at_;
    return value;
  }

  Number literal() {
    const char *first = text_.data() + at_, *last = text_.data() + text_.size();
    std::int64_t integer = 0;
    double real = 0;
    const auto as_integer = std::from_chars(first, last, integer);
    const auto as_real = std::from_chars(first, last, real);
    if (as_real.ec != std::errc{} || !std::isfinite(real)) refuse("expected a number");
    at_ += static_cast<std::size_t>(as_real.ptr - first);
    if (as_integer.ptr != as_real.ptr) return Number::of(real);
    if (as_integer.ec != std::errc{}) refuse("the integer is too large");
    return Number::of(integer);
  }

  Number named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    if (name == "sqrt" && peek() == '(') return square_root();
    if (name == "ceil" && peek() == '(') return rounded_up();
    if (name == "padded" && peek() == '(') return padded(kPaddedTo);
    if (name == "padded_heads" && peek() == '(') return padded(kHeadsPaddedTo);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (!numbers_) return Number::of(std::int64_t{1});
    const auto found = numbers_->find(name);
    if (found != numbers_->end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [other, number] : *numbers_) known.push_back(other);
    const std::string near = nearest_name(name, known);
    refuse_value(fmt::format("no number is named '{}'{}", name,
                             near.empty() ? "" : fmt::format(", did you mean '{}'?", near)));
  }

  Number square_root() {
    const Number of = in_parentheses();
    if (numbers_ && of.real < 0) refuse_value("square root of a negative number");
    return Number::of(numbers_ ? std::sqrt(of.real) : 1.0);
  }

  Number rounded_up() {
    const Number of = in_parentheses();
    if (!numbers_) return Number::of(std::int64_t{1});
    if (of.is_integer) return of;
    if (std::abs(of.real) > 0x1p62) refuse_value("the result does not fit into 64 bits");
    return Number::of(static_cast<std::int64_t>(std::ceil(of.real)));
  }

  Number padded(const char* multiple_of) {
    const Number of = in_parentheses();
    if (!numbers_) return Number::of(std::int64_t{1});
    if (!of.is_integer || of.integer < 0) refuse_value("only integers from 0 on are padded");
    const auto found = numbers_->find(multiple_of);
    if (found == numbers_->end()) return of;
    const std::int64_t multiple = found->second.integer;
    return exactly(of.integer, '+', (multiple - of.integer % multiple) % multiple);
  }

  Number combined(const Number& a, char op, const Number& b) const {
    if (!numbers_) return Number::of(std::int64_t{1});
    if (op == '/' && b.real == 0) refuse_value("division by zero");
    return a.is_integer && b.is_integer ? exactly(a.integer, op, b.integer) : roughly(a.real, op, b.real);
  }

  Number exactly(std::int64_t a, char op, std::int64_t b) const {
    std::int64_t value = 0;
    bool overflow = false;
    if (op == '+') overflow = __builtin_add_overflow(a, b, &value);
    if (op == '-') overflow = __builtin_sub_overflow(a, b, &value);
    if (op == '*') overflow = __builtin_mul_overflow(a, b, &value);
    if (op == '/' && b == -1) overflow = __builtin_sub_overflow(std::int64_t{0}, a, &value);
    if (op == '/' && b != -1) {
      if (a % b != 0) refuse_value(fmt::format("{} is not divisible by {}", a, b));
      value = a / b;
    }
    if (overflow) refuse_value("the result does not fit into 64 bits");
    return Number::of(value);
  }

  Number roughly(double a, char op, double b) const {
    const double value = op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
    if (!std::isfinite(value)) refuse_value("the result is not a finite number");
    return Number::of(value);
  }

  const std::string& text_;
  const Numbers* numbers_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Number evaluate(const std::string& expression, const Numbers& numbers) {
  return ExpressionReader(expression, &numbers).read();
}

std::vector<std::string> names_in(const std::string& expression) {
  ExpressionReader reader(expression, nullptr);
  reader.read();
  return reader.names;
}

std::string number_text(const Number& number) {
  if (number.is_integer) return fmt::format("{}", number.integer);
  const std::string text = fmt::format("{}", number.real);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

bool is_plain_number(const std::string& expression) {
  double real = 0;
  const char* last = expression.data() + expression.size();
  const auto [end, error] = std::from_chars(expression.data(), last, real);
  const bool starts_like_toml = !expression.empty() && (is_digit(expression[0]) || expression[0] == '-');
  return error == std::errc{} && end == last && starts_like_toml && std::isfinite(real);
}

}  // namespace alpa
