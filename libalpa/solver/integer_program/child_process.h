#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/deadline.h"

namespace alpa {

/// Runs a program with `input` as its standard input and returns what it wrote to standard output; its
/// standard error is dropped. Nothing when it did not end before the deadline (it is killed then) or ended
/// with a status other than 0. Throws Error(run_time) when it cannot be started.
///
/// The process is spawned, not forked: nothing of this process runs in it, so that several threads may call
/// this at once, whatever locks others hold. `command` is the path of the program and its arguments.
std::optional<std::string> run_process(const std::vector<std::string>& command, const std::string& input,
                                       const Deadline&);

}  // namespace alpa
