#include "apps/command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

const char* meaning(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::run_time:
      return "failed while running";
    case ErrorKind::usage:
      return "wrong usage of the command line";
    case ErrorKind::input:
      return "bad or missing input";
    case ErrorKind::infeasible:
      return "no feasible plan";
    case ErrorKind::allocation:
      return "the job's allocation does not match";
    case ErrorKind::non_finite:
      return "a loss that is not finite";
    case ErrorKind::peer:
      return "a rank hangs or is gone";
    case ErrorKind::stopped_early:
      return "stopped early, with what there was by then saved: submit again";
  }
  return "";
}

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw Error(ErrorKind::usage, fmt::format("{}: expected {}, found '{}'", name, expected, found),
              "see --help");
}

template <class Number>
Number parsed(const std::string& name, const std::string& text, const Range& range) {
  const std::string kind = std::is_integral_v<Number> ? "an integer" : "a number";
  const std::string bounds = range_text(range);
  const std::string expected = bounds.empty() ? kind : kind + ", " + bounds;
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !range.contains(static_cast<double>(value)))
    refuse(name, expected, text);
  return value;
}

template <class Text>
std::function<void(const std::string&)> text_setter(const std::string& name, Text& value) {
  return [name, &value](const std::string& text) {
    if (text.empty()) refuse(name, "a text that is not empty", text);
    value = text;
  };
}

std::string with_bounds(const std::string& help, const Range& range) {
  const std::string bounds = range_text(range);
  return bounds.empty() ? help : help + "; " + bounds;
}

std::string setting_lines(const Setting& setting) {
  std::string head = "  " + setting.name +
                     (setting.value_name.empty() || setting.is_argument() ? "" : " " + setting.value_name);
  std::string text = fmt::format("{:<28}", head);
  if (head.size() >= 28) text += "\n" + std::string(28, ' ');
  text += setting.help;
  if (setting.is_required && !setting.is_argument()) text += " (must be given)";
  if (!setting.default_value.empty()) text += fmt::format(" [{}]", setting.default_value);
  text += "\n";
  for (const std::string& word : setting.words) text += std::string(30, ' ') + word + "\n";
  return text;
}

}  // namespace

Command& Command::add(Setting setting) {
  assert(setting.is_argument() || setting.name.starts_with("--"));
  settings_.push_back(std::move(setting));
  return *this;
}

Command& Command::required() {
  settings_.back().is_required = true;
  settings_.back().default_value.clear();
  return *this;
}

Command& Command::add_path(Setting setting, std::filesystem::path& value) {
  setting.set = text_setter(setting.name, value);
  add(std::move(setting));
  return reads(
      [&value] { return value.empty() ? std::vector<std::filesystem::path>{} : std::vector{value}; });
}

Command& Command::plays(FileRole role, Files files) {
  settings_.back().role = role;
  if (files) settings_.back().files = std::move(files);
  assert(settings_.back().files);
  return *this;
}

Command& Command::reads(Files files) { return plays(FileRole::read, std::move(files)); }
Command& Command::writes(Files files) { return plays(FileRole::written, std::move(files)); }
Command& Command::continues(Files files) { return plays(FileRole::continued, std::move(files)); }

Command& Command::renews(std::function<bool(const std::filesystem::path&)> is_earlier) {
  settings_.back().is_earlier = std::move(is_earlier);
  return writes();
}

bool Command::has_outputs() const {
  return std::any_of(settings_.begin(), settings_.end(),
                     [](const Setting& setting) { return setting.role == FileRole::written; });
}

Command& Command::argument(const std::string& name, std::filesystem::path& value, const std::string& help) {
  return add_path({.name = name, .value_name = name, .help = help, .is_required = true}, value);
}

Command& Command::option(const std::string& name, std::filesystem::path& value, const std::string& help) {
  return add_path({.name = name, .value_name = "PATH", .help = help, .default_value = value.string()}, value);
}

Command& Command::option(const std::string& name, std::string& value, const std::string& help,
                         const std::string& form) {
  return add({.name = name,
              .value_name = form,
              .help = help,
              .default_value = value,
              .set = text_setter(name, value)});
}

Command& Command::option(const std::string& name, int& value, const std::string& help, Range range) {
  return add(
      {.name = name,
       .value_name = "N",
       .help = with_bounds(help, range),
       .default_value = std::to_string(value),
       .set = [&value, name, range](const std::string& text) { value = parsed<int>(name, text, range); }});
}

Command& Command::option(const std::string& name, std::int64_t& value, const std::string& help, Range range) {
  return add({.name = name,
              .value_name = "N",
              .help = with_bounds(help, range),
              .default_value = std::to_string(value),
              .set = [&value, name, range](const std::string& text) {
                value = parsed<std::int64_t>(name, text, range);
              }});
}

Command& Command::option(const std::string& name, double& value, const std::string& help, Range range) {
  return add(
      {.name = name,
       .value_name = "X",
       .help = with_bounds(help, range),
       .default_value = fmt::format("{}", value),
       .set = [&value, name, range](const std::string& text) { value = parsed<double>(name, text, range); }});
}

Command& Command::option(const std::string& name, std::vector<std::int64_t>& value, const std::string& help,
                         Range range) {
  const auto set = [&value, name, range](const std::string& text) {
    value.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      value.push_back(parsed<std::int64_t>(name, text.substr(begin, end - begin), range));
      begin = end + 1;
    }
  };
  return add({.name = name, .value_name = "N,N,...", .help = with_bounds(help, range), .set = set});
}

Command& Command::flag(const std::string& name, bool& value, const std::string& help) {
  return add({.name = name, .help = help, .set = [&value](const std::string&) { value = true; }});
}

Command& Command::word_option(const std::string& name, const std::string& help,
                              const std::vector<std::pair<std::string, std::string>>& words,
                              std::size_t chosen, std::function<void(std::size_t)> choose) {
  std::string all, alternatives;
  std::vector<std::string> lines;
  for (const auto& [word, sentence] : words) {
    alternatives += (alternatives.empty() ? "" : "|") + word;
    if (!sentence.empty()) lines.push_back(fmt::format("{:<12} {}", word, sentence));
  }
  const auto set = [name, words, choose = std::move(choose), alternatives](const std::string& text) {
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == text; });
    if (found == words.end()) refuse(name, alternatives, text);
    choose(static_cast<std::size_t>(found - words.begin()));
  };
  return add({.name = name,
              .value_name = alternatives,
              .help = help,
              .default_value = words[chosen].first,
              .words = lines,
              .set = set});
}

Command& Command::example(const std::string& command_line, const std::string& what) {
  examples_.emplace_back(command_line, what);
  return *this;
}

Command& Command::may_end_with(const std::vector<ErrorKind>& kinds) {
  kinds_.insert(kinds_.end(), kinds.begin(), kinds.end());
  std::sort(kinds_.begin(), kinds_.end());
  return *this;
}

Command& Command::exit_statuses(std::vector<std::pair<int, std::string>> meanings, int failure) {
  exit_meanings_ = std::move(meanings);
  failure_status_ = failure;
  return *this;
}

std::string Command::help(const std::string& full_name,
                          const std::vector<const Command*>& subcommands) const {
  std::string usage = full_name, arguments, options;
  for (const Setting& setting : settings_) {
    if (setting.is_argument() || setting.is_required)
      usage += setting.is_argument() ? " " + setting.name : " " + setting.name + " " + setting.value_name;
    (setting.is_argument() ? arguments : options) += setting_lines(setting);
  }
  std::string text = fmt::format("{}: {}\n\nusage: {} [options]\n", full_name, purpose_, usage);
  for (const Command* subcommand : subcommands)
    text += fmt::format("       {} {} ...  (--help says more)\n", full_name, subcommand->name());
  if (!arguments.empty()) text += "\n" + arguments;
  text += "\noptions [default]:\n" + options;
  if (!subcommands.empty()) text += "\ncommands:\n";
  for (const Command* subcommand : subcommands)
    text += fmt::format("  {:<12} {}\n", subcommand->name(), subcommand->purpose());
  std::vector<std::pair<int, std::string>> statuses = exit_meanings_;
  if (statuses.empty()) {
    statuses.emplace_back(0, "done");
    for (const ErrorKind kind : kinds_) statuses.emplace_back(static_cast<int>(kind), meaning(kind));
  }
  text += "\nexit status:\n";
  for (const auto& [status, words] : statuses) text += fmt::format("  {:<3} {}\n", status, words);
  if (!examples_.empty()) text += "\nexamples:\n";
  for (const auto& [line, what] : examples_) text += fmt::format("  {}\n      {}\n", line, what);
  return text;
}

}  // namespace alpa
