#include "libalpa/tokenizer/composed_text.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/utf8.h"

namespace alpa {
namespace {

struct FreeText {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// Of UTF-8.
void append_composed(std::string_view text, std::string& to) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), std::ssize(text), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, FreeText> owner(composed);
  if (bytes < 0)
    throw Error(ErrorKind::run_time, fmt::format("cannot compose a text: {}", utf8proc_errmsg(bytes)),
                "shorter documents");
  to.append(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(bytes));
}

}  // namespace

std::string composed_text(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  std::string composed;
  while (!text.empty()) {
    const std::size_t valid = utf8_prefix(text);
    if (valid > 0) append_composed(text.substr(0, valid), composed);
    if (valid < text.size()) composed.push_back(text[valid]);
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return composed;
}

// Nothing is composed over the beginning of an ASCII character.
std::size_t composed_part(std::string_view text) {
  const auto last = std::find_if(text.rbegin(), text.rend(), is_ascii);
  return last == text.rend() ? 0 : static_cast<std::size_t>(text.rend() - last) - 1;
}

}  // namespace alpa
