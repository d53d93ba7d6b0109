#pragma once
// Internal to this module.
#include <string>
#include <string_view>

namespace alpa {

/// What a line of JSON lines says at one of its fields.
struct JsonField {
  std::string text;
  std::string problem;  ///< "" or why there is no text, e.g. "no field 'text'"
};

/// The text of a field of an object on a line; of what it holds besides nothing is kept.
JsonField json_field(std::string_view line, const std::string& field);

}  // namespace alpa
