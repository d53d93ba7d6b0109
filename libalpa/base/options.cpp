#include "libalpa/base/options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace alpa {
namespace {

/// TOML distinguishes a float from an integer by its point or exponent.
std::string float_text(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string list_text(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string truth_text(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string toml_string(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\u{:04x}", byte);
    else
      text += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string(1, c);
  }
  return text + "\"";
}

void OptionsFromToml::integer(const OptionText& about, std::int64_t& value) {
  value = table_.integer(about.name, value, about.range);
}
void OptionsFromToml::integers(const OptionText& about, std::vector<std::int64_t>& values) {
  if (table_.has(about.name)) values = table_.integers(about.name, about.range);
}
void OptionsFromToml::number(const OptionText& about, double& value) {
  value = table_.number(about.name, value, about.range);
}
void OptionsFromToml::boolean(const OptionText& about, bool& value) {
  value = table_.boolean(about.name, value);
}
void OptionsFromToml::string(const OptionText& about, std::string& value) {
  value = table_.string(about.name, value);
}
void OptionsFromToml::word(const OptionText& about, std::size_t& chosen,
                           const std::vector<Word<std::size_t>>& words) {
  chosen = table_.word(about.name, chosen, words);
}

void OptionsAsToml::line(const OptionText& about, const std::string& value) {
  text_ += fmt::format("{} = {}\n", about.name, value);
}
void OptionsAsToml::integer(const OptionText& about, std::int64_t& value) {
  line(about, std::to_string(value));
}
void OptionsAsToml::integers(const OptionText& about, std::vector<std::int64_t>& values) {
  line(about, list_text(values));
}
void OptionsAsToml::number(const OptionText& about, double& value) { line(about, float_text(value)); }
void OptionsAsToml::boolean(const OptionText& about, bool& value) { line(about, truth_text(value)); }
void OptionsAsToml::string(const OptionText& about, std::string& value) { line(about, toml_string(value)); }
void OptionsAsToml::word(const OptionText& about, std::size_t& chosen,
                         const std::vector<Word<std::size_t>>& words) {
  line(about, toml_string(std::string(words.at(chosen).name)));
}

void OptionsReference::line(const OptionText& about, const std::string& value) {
  const std::string bounds = range_text(about.range);
  text_ +=
      fmt::format("{} = {}\n    {}{}\n", about.name, value, about.help, bounds.empty() ? "" : "; " + bounds);
}
void OptionsReference::integer(const OptionText& about, std::int64_t& value) {
  line(about, std::to_string(value));
}
void OptionsReference::integers(const OptionText& about, std::vector<std::int64_t>& values) {
  line(about, list_text(values));
}
void OptionsReference::number(const OptionText& about, double& value) { line(about, float_text(value)); }
void OptionsReference::boolean(const OptionText& about, bool& value) { line(about, truth_text(value)); }
void OptionsReference::string(const OptionText& about, std::string& value) {
  line(about, toml_string(value));
}
void OptionsReference::word(const OptionText& about, std::size_t& chosen,
                            const std::vector<Word<std::size_t>>& words) {
  line(about, toml_string(std::string(words.at(chosen).name)));
  std::size_t widest = 0;
  for (const Word<std::size_t>& choice : words) widest = std::max(widest, choice.name.size());
  for (const Word<std::size_t>& choice : words)
    text_ += fmt::format("        {:<{}}  {}\n", choice.name, widest, choice.sentence);
}

}  // namespace alpa
