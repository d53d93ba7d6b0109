#include "apps/command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <memory>

#include "apps/described_settings.h"
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

std::string setting_lines(const Setting& setting) {
  std::string head =
      "  " + setting.name + (setting.is_flag() || setting.is_argument() ? "" : " " + setting.value_name);
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

std::string Setting::described() const {
  const std::string form = is_flag() || is_argument() ? "" : " " + value_name;
  return fmt::format("{}{}: {}", name, form, help);
}

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
  setting.set = [name = setting.name, about = setting.described(), &value](const std::string& text) {
    if (text.empty()) refuse_text(name, "a text that is not empty", text, about);
    value = text;
  };
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

Command& Command::add_paths(Setting setting, std::vector<std::filesystem::path>& values) {
  setting.takes_several = true;
  setting.set = [name = setting.name, about = setting.described(), &values](const std::string& text) {
    if (text.empty()) refuse_text(name, "a text that is not empty", text, about);
    values.emplace_back(text);
  };
  add(std::move(setting));
  return reads([&values] { return values; });
}

Command& Command::arguments(const std::string& name, std::vector<std::filesystem::path>& values,
                            const std::string& help) {
  return add_paths({.name = name, .value_name = name, .help = help, .is_required = true}, values);
}

Command& Command::option(const std::string& name, std::vector<std::filesystem::path>& values,
                         const std::string& help) {
  return add_paths({.name = name, .value_name = "PATH", .help = help}, values);
}

Command& Command::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return add({.name = name,
              .value_name = "TEXT",
              .help = help,
              .takes_several = true,
              .set = [&values](const std::string& text) { values.push_back(text); }});
}

Command& Command::option(const std::string& name, std::vector<double>& values, const std::string& help,
                         Range range) {
  const auto one = std::make_shared<double>(range.low);
  described([=](OptionsVisitor& visit) { visit.field(name, *one, help, range); });
  Setting& setting = settings_.back();
  setting.takes_several = true;
  setting.default_value.clear();
  setting.set = [set_one = setting.set, one, &values](const std::string& text) {
    set_one(text);
    values.push_back(*one);
  };
  return *this;
}

Command& Command::option(const std::string& name, std::filesystem::path& value, const std::string& help) {
  return add_path({.name = name, .value_name = "PATH", .help = help, .default_value = value.string()}, value);
}

Command& Command::described(const std::function<void(OptionsVisitor&)>& list) {
  for (Setting& setting : described_settings(list)) add(std::move(setting));
  return *this;
}

Command& Command::option(const std::string& name, std::string& value, const std::string& help,
                         const std::string& form) {
  return described([=, &value](OptionsVisitor& visit) { visit.field(name, value, help, form); });
}

Command& Command::flag(const std::string& name, bool& value, const std::string& help) {
  return described([=, &value](OptionsVisitor& visit) { visit.field(name, value, help); });
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

std::vector<std::pair<int, std::string>> Command::statuses() const {
  std::vector<std::pair<int, std::string>> all = exit_meanings_;
  if (!all.empty()) return all;
  all.emplace_back(0, "done");
  for (const ErrorKind kind : kinds_) all.emplace_back(static_cast<int>(kind), meaning(kind));
  return all;
}

std::string Command::usage(const std::string& full_name) const {
  std::string line = full_name;
  for (const Setting& setting : settings_)
    if (setting.is_argument() || setting.is_required)
      line += setting.is_argument() ? " " + setting.name + (setting.takes_several ? "..." : "")
                                    : " " + setting.name + " " + setting.value_name;
  return line + " [options]";
}

std::string Command::help(const std::string& full_name,
                          const std::vector<const Command*>& subcommands) const {
  std::string arguments, options;
  for (const Setting& setting : settings_)
    (setting.is_argument() ? arguments : options) += setting_lines(setting);
  std::string text = fmt::format("{}: {}\n\nusage: {}\n", full_name, purpose_, usage(full_name));
  for (const Command* subcommand : subcommands)
    text += fmt::format("       {} {} ...  (--help says more)\n", full_name, subcommand->name());
  if (!arguments.empty()) text += "\n" + arguments;
  text += "\noptions [default]:\n" + options;
  if (!subcommands.empty()) text += "\ncommands:\n";
  for (const Command* subcommand : subcommands)
    text += fmt::format("  {:<12} {}\n", subcommand->name(), subcommand->purpose());
  text += "\nexit status:\n";
  for (const auto& [status, words] : statuses()) text += fmt::format("  {:<3} {}\n", status, words);
  if (!examples_.empty()) text += "\nexamples:\n";
  for (const auto& [line, what] : examples_) text += fmt::format("  {}\n      {}\n", line, what);
  return text;
}

}  // namespace alpa
