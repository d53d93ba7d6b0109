#include "libalpa/base/names.h"

#include <fmt/core.h>

#include <algorithm>

namespace alpa {
namespace {

/// Bytes of the character of UTF-8 that `text` begins with; 0: it begins with none.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  const bool continues = std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(size),
                                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
  return continues ? size : 0;
}

/// Of the sets C0 (with DEL) and C1.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    const bool plain = size > 0 && (!is_control(character) || kept.find(text[0]) != std::string_view::npos);
    for (const char c : character)
      shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(character.size());
  }
  return shown;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && printable(text, "") == text;
}

}  // namespace alpa
