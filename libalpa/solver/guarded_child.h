#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace alpa {

/// Runs `body` in a forked, silenced child process and returns the numbers it returned; nothing when the
/// child did not end within `time_limit_s`, crashed, or could not be started.
///
/// For library code that neither looks at the clock, nor keeps quiet, nor may run in two threads at once.
/// `body` must not rely on other threads. Safe to call from several threads.
std::optional<std::vector<double>> run_in_child(const std::function<std::vector<double>()>& body,
                                                double time_limit_s);

}  // namespace alpa
