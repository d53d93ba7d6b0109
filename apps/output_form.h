#pragma once

namespace alpa {

/// How an answer is printed.
enum class OutputForm { text, json, csv };

/// As the flags --json and --csv say. Throws Error(usage) where both are given.
OutputForm output_form(bool json, bool csv);

}  // namespace alpa
