#include "apps/bash_completion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <sstream>

namespace alpa {
namespace {

/// What stands for itself in "auto|must|PATH"; the rest stands for other things.
struct ValueWords {
  std::string words;
  bool are_all = true;
  auto operator<=>(const ValueWords&) const = default;
};

ValueWords value_words(const std::string& form) {
  ValueWords value;
  std::istringstream parts(form);
  for (std::string part; std::getline(parts, part, '|');)
    if (std::ranges::any_of(part, [](unsigned char c) { return std::isupper(c); }))
      value.are_all = false;
    else
      value.words += (value.words.empty() ? "" : " ") + part;
  return value;
}

constexpr const char* kFrame =
    R"(# Completion for bash, by {0} --help-as bash. Sourced, or found by bash-completion under the command's name.
_{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command='' words='' files=''
  COMPREPLY=()
  # --option=word comes as three words.
  [[ $word != '=' ]] || word=''
  [[ $before != '=' ]] || before=${{COMP_WORDS[COMP_CWORD - 2]}}
{2}  case "$command $before" in
{3}    *)
      if [[ $word == -* ]]; then
        case $command in
{4}        esac
      else
        ((COMP_CWORD > 1)) || words='{5}'
        files=yes
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ -n $files ]]; then
    compopt -o filenames
    mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _{1} {0}
)";

}  // namespace

std::string bash_completion(const std::vector<NamedCommand>& commands) {
  const std::string& program = commands.front().full_name;
  std::string function = program, subcommands, subcommand, values, options;
  std::ranges::replace(function, '-', '_');
  std::map<ValueWords, std::string> patterns;  // of options, by the words that they take
  for (const NamedCommand& named : commands) {
    const std::string name = named.full_name == program ? "" : named.command->name();
    if (!name.empty()) subcommands += (subcommands.empty() ? "" : " ") + name;
    std::string names;
    for (const Setting& setting : named.command->settings()) {
      if (setting.is_argument()) continue;
      names += (names.empty() ? "" : " ") + setting.name;
      if (setting.is_flag()) continue;
      const ValueWords value = value_words(setting.value_name);
      if (value.words.empty()) continue;  // may be a file, as what follows flags
      std::string& pattern = patterns[value];
      pattern += (pattern.empty() ? "    " : " | \\\n      ") + fmt::format("'{} {}'", name, setting.name);
    }
    options += fmt::format("          {}) words='{}' ;;\n", name.empty() ? "''" : name, names);
  }
  for (const auto& [value, pattern] : patterns)
    values += fmt::format("{})\n      words='{}'{}\n      ;;\n", pattern, value.words,
                          value.are_all ? "" : " files=yes");
  if (!subcommands.empty()) {
    std::string pattern = subcommands;
    for (std::size_t at = 0; (at = pattern.find(' ', at)) != std::string::npos; at += 3)
      pattern.replace(at, 1, " | ");
    subcommand = fmt::format(
        "  case ${{COMP_WORDS[1]}} in\n    {}) ((COMP_CWORD == 1)) || command=${{COMP_WORDS[1]}} ;;\n  "
        "esac\n",
        pattern);
  }
  return fmt::format(kFrame, program, function, subcommand, values, options, subcommands);
}

}  // namespace alpa
