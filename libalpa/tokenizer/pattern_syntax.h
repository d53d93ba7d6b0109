#pragma once
// Internal to this module.
#include <string>
#include <string_view>

namespace alpa {

/// A regular expression of a tokenizer.json (Oniguruma's syntax) as one of PCRE2 that matches the same, with
/// PCRE2_UTF, PCRE2_UCP and PCRE2_MULTILINE: `\s` and `\S` become Unicode's White_Space, which differs from
/// PCRE2's at U+180E. Throws Error(input) that names what is not known to be the same in both.
std::string pcre2_pattern(std::string_view onig_pattern);

/// A pattern that matches this text alone.
std::string literal_pattern(std::string_view text);

}  // namespace alpa
