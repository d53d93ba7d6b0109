#pragma once
// Internal to this module.
#include <cstddef>
#include <string>
#include <string_view>

namespace alpa {

/// A text in Unicode's normal form C; bytes that are no UTF-8 stay.
std::string composed_text(std::string_view text);

/// Before which byte the last part of a text begins that text behind it may still change when both are
/// composed: of what is before, composed_text() is final.
std::size_t composed_part(std::string_view text);

}  // namespace alpa
