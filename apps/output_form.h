#pragma once
#include <string>

namespace alpa {

/// How an answer is printed.
enum class OutputForm { text, json, csv };

/// As the flags --json and --csv say. Throws Error(usage) where both are given.
OutputForm output_form(bool json, bool csv);

/// Prints text for people, and below it what its words and symbols stand for (plan/facts/legend.h).
void print_with_legend(const std::string& text);

}  // namespace alpa
