#pragma once
#include <string>
#include <vector>

#include "apps/command.h"

namespace alpa {

/// A manual page, in the macros of man(7), of a command (the first) and its subcommands. `version` and `date`
/// (2025-01-31) stand in its frame.
std::string manual_page(const std::vector<NamedCommand>& commands, const std::string& version,
                        const std::string& date);

}  // namespace alpa
