#pragma once
#include <string>
#include <string_view>

namespace alpa {

inline constexpr int kLongestName = 255;  ///< bytes, as of a file name

/// Whether a file may call something so (a model, a cluster, a device): 1 to kLongestName bytes of UTF-8, no
/// control character among them.
bool is_name(std::string_view);

/// The text with what a terminal would take for a command made visible, as "\x1b": control characters but
/// those of `kept`, and bytes that are not UTF-8.
std::string printable(std::string_view text, std::string_view kept = "\n\t");

}  // namespace alpa
