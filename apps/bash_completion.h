#pragma once
#include <string>
#include <vector>

#include "apps/command.h"

namespace alpa {

/// A script for bash that completes the command lines of a command (the first) and its subcommands: their
/// names, options, the words of options that have such, and file names for all else.
std::string bash_completion(const std::vector<NamedCommand>& commands);

}  // namespace alpa
