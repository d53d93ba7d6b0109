#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command.h"

namespace alpa {

/// One command's settings as CLI11 parses them: texts by name, applied later.
struct ParsedCommand {
  NamedCommand command;
  CLI::App* cli = nullptr;
  std::vector<std::pair<const Setting*, CLI::Option*>> options = {};

  bool is_given(std::string_view name) const;
};

/// Registers the command's settings with CLI11.
void register_settings(ParsedCommand&);

/// Sets what the line gave. Throws Error(usage), as all here, with what to give instead: what is unknown, has
/// no value, is given twice or is missing.
void apply(const ParsedCommand&);

/// What CLI11 says of an option of one of these.
[[noreturn]] void refuse_without_value(std::string_view said, const std::vector<ParsedCommand>&);

/// Throws Error(usage) for "--name=", behind which the next word would be taken for the value.
void refuse_empty_values(int argc, const char* const* argv);

/// Throws Error(usage) where something stands before the command that was chosen, which would have no effect.
void refuse_before_command(const ParsedCommand& program, const Command& chosen);

/// The first word of a line that named none of these commands but the first, which may not be meant: it
/// throws where the word is no file.
void check_first_word(const std::string& word, const std::vector<NamedCommand>&);

}  // namespace alpa
