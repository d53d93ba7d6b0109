#pragma once
// Internal to this module.
#include <cstddef>
#include <string>
#include <string_view>

namespace alpa {

/// How many bytes the well-formed character at the beginning of a text has; 0 where there is none.
std::size_t utf8_character(std::string_view text);

/// How many bytes at the beginning of a text are UTF-8.
std::size_t utf8_prefix(std::string_view text);

/// Whether these bytes, which are no character, are the beginning of one.
bool begins_utf8_character(std::string_view text);

/// The code point of a character that utf8_character() found.
char32_t code_point(std::string_view character);

void append_utf8(char32_t code_point, std::string& to);

/// Whether Unicode calls it white space (White_Space), as `\s` of a tokenizer.json does.
bool is_white_space(char32_t code_point);

}  // namespace alpa
