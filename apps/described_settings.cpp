#include "apps/described_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using Words = std::vector<Word<std::size_t>>;

std::string option_name(std::string_view name) {
  std::string option = name.starts_with("--") ? std::string(name) : "--" + std::string(name);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::string alternatives(const Words& words) {
  std::string text;
  for (const Word<std::size_t>& word : words) text += (text.empty() ? "" : "|") + std::string(word.name);
  return text;
}

/// What the help says of each setting.
class SettingsInHelp final : public OptionsVisitor {
 public:
  std::vector<Setting> settings;

 private:
  void integer(const OptionText& about, std::int64_t& value) override {
    add(about, "N").default_value = std::to_string(value);
  }
  void integers(const OptionText& about, std::vector<std::int64_t>&) override { add(about, "N,N,..."); }
  void number(const OptionText& about, double& value) override {
    add(about, "X").default_value = fmt::format("{}", value);
  }
  void boolean(const OptionText& about, [[maybe_unused]] bool& value) override {
    assert(!value);  // naming a flag sets it
    add(about, "");
  }
  void string(const OptionText& about, std::string& value) override {
    add(about, about.form).default_value = value;
  }
  void word(const OptionText& about, std::size_t& chosen, const Words& words) override {
    Setting& setting = add(about, alternatives(words));
    setting.default_value = words.at(chosen).name;
    std::size_t widest = 12;
    for (const Word<std::size_t>& word : words) widest = std::max(widest, word.name.size());
    for (const Word<std::size_t>& word : words)
      if (!word.sentence.empty())
        setting.words.push_back(fmt::format("{:<{}} {}", word.name, widest, word.sentence));
  }

  Setting& add(const OptionText& about, std::string_view form) {
    const std::string bounds = range_text(about.range);
    return settings.emplace_back(
        Setting{.name = option_name(about.name),
                .value_name = std::string(form),
                .help = std::string(about.help) + (bounds.empty() ? "" : "; " + bounds)});
  }
};

/// Sets one of the settings from the text of its option.
class SettingFromText final : public OptionsVisitor {
 public:
  SettingFromText(std::string option, std::string text)
      : option_(std::move(option)), text_(std::move(text)) {}

 private:
  bool is_it(const OptionText& about) const { return option_name(about.name) == option_; }

  /// "--steps N: end after that many steps of the run"
  std::string described(const OptionText& about, std::string_view form) const {
    return fmt::format("{} {}: {}", option_, form, about.help);
  }

  /// What to give in place of a text that is no such number: that number, where it is one written otherwise.
  template <class Number>
  std::string number_meant(const OptionText& about, std::string_view form, const std::string& text) const {
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = code == std::errc{} && end == text.data() + text.size() &&
                          value == std::floor(value) && std::abs(value) < 1e15 && about.range.contains(value);
    return std::is_integral_v<Number> && is_whole && form == "N" ? fmt::format("{} {:.0f}", option_, value)
                                                                 : described(about, form);
  }

  template <class Number>
  Number parsed(const OptionText& about, std::string_view form, const std::string& text) const {
    const Range& range = about.range;
    Number value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc{} && end == text.data() + text.size() && range.contains(static_cast<double>(value)))
      return value;
    const std::string kind = std::is_integral_v<Number> ? "an integer" : "a number";
    const std::string bounds = range_text(range);
    refuse_text(option_, bounds.empty() ? kind : kind + ", " + bounds, text,
                number_meant<Number>(about, form, text));
  }

  void integer(const OptionText& about, std::int64_t& value) override {
    if (is_it(about)) value = parsed<std::int64_t>(about, "N", text_);
  }
  void integers(const OptionText& about, std::vector<std::int64_t>& values) override {
    if (!is_it(about)) return;
    values.clear();
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find(',', begin), text_.size());
      values.push_back(parsed<std::int64_t>(about, "N,N,...", text_.substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  void number(const OptionText& about, double& value) override {
    if (is_it(about)) value = parsed<double>(about, "X", text_);
  }
  void boolean(const OptionText& about, bool& value) override { value |= is_it(about); }
  void string(const OptionText& about, std::string& value) override {
    if (!is_it(about)) return;
    if (text_.empty()) refuse_text(option_, "a text that is not empty", text_, described(about, about.form));
    value = text_;
  }
  void word(const OptionText& about, std::size_t& chosen, const Words& words) override {
    if (!is_it(about)) return;
    std::vector<std::string> names;
    for (const Word<std::size_t>& word : words) names.emplace_back(word.name);
    chosen = static_cast<std::size_t>(std::find(names.begin(), names.end(), text_) - names.begin());
    if (chosen < words.size()) return;
    const std::string near = nearest_name(text_, names);
    refuse_text(option_, alternatives(words), text_,
                near.empty() ? "see --help" : fmt::format("did you mean '{}'?", near));
  }

  std::string option_, text_;
};

}  // namespace

std::vector<Setting> described_settings(const std::function<void(OptionsVisitor&)>& list) {
  SettingsInHelp help;
  list(help);
  for (Setting& setting : help.settings)
    setting.set = [list, name = setting.name](const std::string& text) {
      SettingFromText reader(name, text);
      list(reader);
    };
  return std::move(help.settings);
}

void refuse_text(const std::string& option, const std::string& expected, const std::string& found,
                 const std::string& hint) {
  throw Error(ErrorKind::usage, fmt::format("{}: expected {}, found '{}'", option, expected, found), hint);
}

}  // namespace alpa
