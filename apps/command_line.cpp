#include "apps/command_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "libalpa/base/error.h"
#include "libalpa/base/other_tools.h"
#include "libalpa/base/unreadable_file.h"

namespace alpa {
namespace {

[[noreturn]] void refuse_line(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::usage, what, hint);
}

std::string did_you_mean(const std::string& name) { return fmt::format("did you mean '{}'?", name); }

/// What stands for the value in "red|green|TEXT".
std::vector<std::string> alternatives_of(const Setting& setting) {
  std::vector<std::string> words;
  std::istringstream parts(setting.value_name);
  for (std::string part; std::getline(parts, part, '|');) words.push_back(part);
  return words;
}

[[noreturn]] void refuse_extra(const ParsedCommand& parsed, const std::string& extra) {
  if (!extra.starts_with("-"))
    refuse_line(fmt::format("unexpected argument '{}'", extra),
                parsed.command.command->usage(parsed.command.full_name));
  std::vector<std::string> names;
  for (const Setting& setting : parsed.command.command->settings())
    if (!setting.is_argument()) names.push_back(setting.name);
  const std::string given = extra.substr(0, extra.find('='));
  const std::string near = is_set_elsewhere(given) ? "" : nearest_name(given, names);
  const std::string where = where_set(given);
  refuse_line(fmt::format("unknown option '{}'", given), !near.empty()    ? did_you_mean(near)
                                                         : !where.empty() ? where
                                                                          : "see --help");
}

/// Where the setting does not take a word, another of the command may.
void set_value(const ParsedCommand& parsed, const Setting& setting, const std::string& value) {
  try {
    setting.set(value);
  } catch (const Error& error) {
    const std::vector<std::string> own = alternatives_of(setting);
    if (own.size() > 1)
      for (const auto& [other, unused] : parsed.options)
        if (const auto words = alternatives_of(*other);
            words.size() > 1 && std::ranges::count(words, value) > 0)
          refuse_line(error.happened(), did_you_mean(other->name + " " + value));
    throw;
  }
}

void set_values(const ParsedCommand& parsed, const Setting& setting, const CLI::Option& option) {
  for (const std::string& value : option.results()) {
    if (setting.is_flag() && value != "true")
      refuse_line(fmt::format("{} takes no value, found '{}'", setting.name, value),
                  fmt::format("{}, or nothing", setting.name));
    const auto is_named = [&](const auto& each) {
      return each.first->name == value.substr(0, value.find('='));
    };
    if (!setting.is_flag() && !setting.is_argument() && std::ranges::any_of(parsed.options, is_named))
      refuse_line(fmt::format("{}: a value is missing before '{}'", setting.name, value),
                  setting.described());
    set_value(parsed, setting, setting.is_flag() ? "" : value);
    if (setting.is_flag()) return;
  }
}

}  // namespace

bool ParsedCommand::is_given(std::string_view name) const {
  return std::ranges::any_of(
      options, [&](const auto& each) { return each.first->name == name && each.second->count() > 0; });
}

void register_settings(ParsedCommand& parsed) {
  parsed.cli->allow_extras();
  parsed.cli->set_help_flag();
  for (const Setting& setting : parsed.command.command->settings()) {
    const std::string names = setting.name == "--help" ? "-h,--help" : setting.name;
    CLI::Option* option = setting.is_flag() ? parsed.cli->add_flag(names) : parsed.cli->add_option(names);
    // Extra positionals are reported as such, not taken for a second value.
    if (!setting.is_flag())
      option->expected(setting.takes_several && setting.is_argument() ? CLI::detail::expected_max_vector_size
                                                                      : 1);
    if (!setting.is_argument() || setting.takes_several)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parsed.options.emplace_back(&setting, option);
  }
}

void apply(const ParsedCommand& parsed) {
  const std::vector<std::string> extras = parsed.cli->remaining();
  if (!extras.empty()) refuse_extra(parsed, extras.front());
  for (const auto& [setting, option] : parsed.options) {
    if (!setting->is_flag() && option->count() > 1 && !setting->takes_several)
      refuse_line(fmt::format("{} is given {} times", setting->name, option->count()), "give it once");
    if (option->count() > 0)
      set_values(parsed, *setting, *option);
    else if (setting->is_required)
      refuse_line(fmt::format("{} is missing", setting->name),
                  setting->is_argument()
                      ? parsed.command.command->usage(parsed.command.full_name) + "; --help says more"
                      : setting->described());
  }
}

void refuse_without_value(std::string_view said, const std::vector<ParsedCommand>& commands) {
  const std::string name(said.substr(0, said.find(':')));
  std::string hint = "see --help";
  for (const ParsedCommand& parsed : commands)
    for (const auto& [setting, unused] : parsed.options)
      if (setting->name == name && parsed.cli->parsed()) hint = setting->described();
  refuse_line(fmt::format("{}: a value is missing", name), hint);
}

void refuse_empty_values(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view given(argv[i]); given.starts_with("--") && given.find('=') == given.size() - 1)
      refuse_line(fmt::format("{}: a value is missing behind '='", given.substr(0, given.size() - 1)),
                  "see --help");
}

void refuse_before_command(const ParsedCommand& program, const Command& chosen) {
  std::string said;
  for (const auto& [setting, option] : program.options)
    if (said.empty() && option->count() > 0) said = setting->name;
  if (const auto extras = program.cli->remaining(); said.empty() && !extras.empty()) said = extras.front();
  if (!said.empty())
    refuse_line(fmt::format("'{}' stands before '{}'", said, chosen.name()),
                fmt::format("what {} takes behind it", chosen.name()));
}

void check_first_word(const std::string& word, const std::vector<NamedCommand>& commands) {
  std::error_code ignored;
  if (word.empty() || word.starts_with("-") || word.find_first_of("./") != std::string::npos ||
      commands.size() == 1 || std::filesystem::exists(word, ignored))
    return;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < commands.size(); ++i) names.push_back(commands[i].command->name());
  const std::string near = nearest_name(word, names), file = file_meant(word), where = where_set(word);
  refuse_line(fmt::format("unknown command '{}', and there is no such file", word),
              !near.empty()   ? did_you_mean(near)
              : !file.empty() ? did_you_mean(file)
              : !where.empty()
                  ? where
                  : commands[0].command->usage(commands[0].full_name) + "; --help lists the commands");
}

}  // namespace alpa
