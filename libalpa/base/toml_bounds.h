#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace alpa {

inline constexpr std::size_t kTomlMaxBytes = std::size_t{1} << 20;
inline constexpr int kTomlMaxNesting = 64;

/// Refuses a text that is too large or nested too deeply, without parsing it: the parser and the
/// destructors of what it builds recurse once per level. Arrays, inline tables, headers and dotted keys
/// all count: `[a.b]` followed by `c.d = [[1]]` is 5 levels deep. Other text that is not TOML is let
/// through for the parser to refuse. Throws Error(input) "file:line:column: ...".
void check_toml_bounds(std::string_view text, const std::string& file_name);

}  // namespace alpa
