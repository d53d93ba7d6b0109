#include "libalpa/tokenizer/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace alpa {
namespace {

/// How many bytes a character has that begins so, and what the second of them may be; bytes == 0: none does.
struct Utf8Lead {
  std::size_t bytes = 0;
  unsigned char second_from = 0x80, second_to = 0xbf;
};

Utf8Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xc2 && byte <= 0xdf) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};  // shorter forms are none
  if (byte == 0xed) return {3, 0x80, 0x9f};  // nor are surrogates
  if (byte >= 0xe1 && byte <= 0xef) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

/// How many of the bytes of a lead are there and as they may be.
std::size_t bytes_that_fit(std::string_view text, const Utf8Lead& lead) {
  std::size_t fit = 1;
  for (; fit < lead.bytes && fit < text.size(); ++fit) {
    const auto byte = static_cast<unsigned char>(text[fit]);
    if (byte < (fit == 1 ? lead.second_from : 0x80) || byte > (fit == 1 ? lead.second_to : 0xbf)) break;
  }
  return fit;
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return lead.bytes > 0 && bytes_that_fit(text, lead) == lead.bytes ? lead.bytes : 0;
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t bytes = utf8_character(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

bool begins_utf8_character(std::string_view text) {
  if (text.empty()) return true;
  const Utf8Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return text.size() < lead.bytes && bytes_that_fit(text, lead) == text.size();
}

char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  char32_t code = first & (0x7fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (character[i] & 0x3f);
  return code;
}

void append_utf8(char32_t code, std::string& to) {
  const auto put = [&to](char32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

bool is_white_space(char32_t code) {
  return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}

}  // namespace alpa
