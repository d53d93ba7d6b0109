#include "libalpa/base/toml_syntax.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace alpa {
namespace {

using namespace std::string_view_literals;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string_view line_of(std::string_view text, std::int64_t line) {
  for (std::int64_t i = 1; i < line; ++i) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  return trimmed(text.substr(0, text.find('\n')));
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The number that a value begins with: "80" of "80GB".
std::string_view number_before(std::string_view value) {
  std::size_t end = 0;
  while (end < value.size() && (is_digit(value[end]) || "+-._"sv.find(value[end]) != std::string_view::npos))
    ++end;
  if (end + 1 < value.size() && std::tolower(value[end]) == 'e' &&
      (is_digit(value[end + 1]) || value[end + 1] == '-'))
    for (end += 2; end < value.size() && is_digit(value[end]);) ++end;
  return value.substr(0, end);
}

/// What a value of this line should look like.
std::string value_hint(std::string_view key, std::string_view value) {
  if (value.empty()) return fmt::format("a value behind '=', or the line left out: {} = ...", key);
  if (value.starts_with("\xE2\x80")) return "straight quotes: \"...\"";
  std::string small(value);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  if (small == "true" || small == "false") return fmt::format("{} = {}", key, small);
  if (is_letter(value[0])) {
    const auto end = std::ranges::find_if(value, [](char c) { return c == ' ' || c == '#' || c == ','; });
    return fmt::format("quotes around a text: {} = \"{}\"", key, std::string(value.begin(), end));
  }
  if ((value[0] == '"' || value[0] == '\'') && std::ranges::count(value, value[0]) % 2 == 1)
    return "a text ends on its line, with the quote that it begins with";
  if (value.ends_with(',')) return "without the comma";
  if (has(value, "//") || has(value, ";")) return "# before a comment";
  const std::string_view number = number_before(value);
  if (!number.empty() && number != value)
    return fmt::format("a number without a unit, which is that of the key: {} = {}", key, number);
  return "";
}

std::string hint_for(std::string_view line, std::string_view said) {
  if (has(said, "utf-8")) return "save the file as UTF-8: iconv -f LATIN1 -t UTF-8";
  if (has(said, "cannot redefine")) return "give it once";
  if (line.starts_with("//") || line.starts_with(';') || line.starts_with("/*")) return "# before a comment";
  const std::size_t equals = line.find('=');
  if (equals != std::string_view::npos)
    return value_hint(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && colon > 0 && is_letter(line[0]))
    return fmt::format("'=' between key and value: {} = ...", trimmed(line.substr(0, colon)));
  return "";
}

}  // namespace

void check_is_toml_text(std::string_view text, const std::string& file_name) {
  const auto refuse = [&](const std::string& kind, const std::string& hint) {
    throw Error(ErrorKind::input, fmt::format("'{}' is {}, expected TOML", file_name, kind), hint);
  };
  if (text.starts_with("\x89HDF"))
    refuse("an HDF5 file",
           "a model, a cluster, a pin and constraints are TOML files; a profile goes to --profile, a plan to "
           "alpa-plan explain or alpa-train");
  const auto is_letter_of_16_bits = [&](std::size_t i) { return (text[i] == '\0') != (text[i + 1] == '\0'); };
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      (text.size() > 3 && is_letter_of_16_bits(0) && is_letter_of_16_bits(2)))
    refuse("text of 16 bits a character", "save it as UTF-8: iconv -f UTF-16 -t UTF-8");
  if (has(text.substr(0, 4096), "\0"sv)) refuse("binary", "check the path");
  if (trimmed(text).starts_with('{'))
    refuse("JSON", "share/blocks/README.md shows how a model is written in TOML");
}

bool is_blank_toml(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line[0] != '#') return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

Error toml_syntax_error(std::string_view text, const std::string& file_name, TomlLocation at,
                        std::string_view said) {
  // "Error while parsing key-value pair: expected '=', saw ':'"
  constexpr std::string_view before = "Error while parsing ";
  if (said.starts_with(before) && has(said, ": ")) said.remove_prefix(said.find(": ") + 2);
  return Error(ErrorKind::input, fmt::format("{}:{}:{}: {}", file_name, at.line, at.column, said),
               hint_for(line_of(text, at.line), said));
}

}  // namespace alpa
