#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace alpa {

/// A number of a model file: exact as long as it is an integer.
struct Number {
  bool is_integer = true;
  std::int64_t integer = 0;
  double real = 0;  ///< the value of both kinds

  static Number of(std::int64_t value) { return {true, value, static_cast<double>(value)}; }
  static Number of(double value) { return {false, 0, value}; }
};

/// What the names in an expression stand for.
using Numbers = std::map<std::string, Number>;

/// The entries of what padded( ) and padded_heads( ) round up to multiples of; 1 where there are none. No
/// name reads like these.
inline constexpr const char* kPaddedTo = "padded( )";
inline constexpr const char* kHeadsPaddedTo = "padded_heads( )";

/// The value of "4 * model / heads" or "0.02 / sqrt(2 * layers)": integers, reals, names, + - * / ( ),
/// sqrt, ceil, padded and padded_heads. Operations on integers stay integers, and a division of integers must
/// leave no remainder. Throws Error(input) with the place in the text: bad syntax, unknown name, remainder,
/// overflow, division by zero.
Number evaluate(const std::string& expression, const Numbers&);

/// The names an expression mentions, in order of their first appearance. Throws Error(input) on bad syntax.
std::vector<std::string> names_in(const std::string& expression);

/// The shortest text that reads back to the same number; a real always shows as one ("1.0").
std::string number_text(const Number&);

/// Whether this is a number alone, which TOML can write without quotes.
bool is_plain_number(const std::string& expression);

}  // namespace alpa
