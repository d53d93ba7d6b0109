#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "libalpa/base/options.h"

namespace alpa {

/// The options that a list of settings makes: "micro_batches" is --micro-batches, with what the help says of
/// it, and its text is held to the list's ranges and words. The list is called again for each text that is
/// set.
std::vector<Setting> described_settings(const std::function<void(OptionsVisitor&)>& list);

/// Throws Error(usage): "--count: expected an integer, found 'two'".
[[noreturn]] void refuse_text(const std::string& option, const std::string& expected,
                              const std::string& found, const std::string& hint = "see --help");

}  // namespace alpa
