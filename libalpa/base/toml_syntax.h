#pragma once
#include <string>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/toml_location.h"

namespace alpa {

/// Throws Error(input) where a text is of another kind than TOML: HDF5, JSON, 16 bits a character, binary.
void check_is_toml_text(std::string_view text, const std::string& file_name);

/// Whether there is nothing in it but comments.
bool is_blank_toml(std::string_view text);

/// Error(input) "file:line:column: ..." for what the parser said, with how that is written in TOML.
Error toml_syntax_error(std::string_view text, const std::string& file_name, TomlLocation,
                        std::string_view said);

}  // namespace alpa
