#pragma once
#include <filesystem>

#include "libalpa/plan/plan.h"

namespace alpa {

/// Checks what a plan file says twice: columns in words of what other columns and the model say. Throws
/// Error(input) with file, column, row and what was expected.
void check_told_columns(const std::filesystem::path&, const Plan&, const Graph&);

/// Checks what a plan says of itself against its program's memory and timeline, played with the costs of its
/// cluster (`again`), and the chosen candidate against both. Times that came from a profile only have to
/// agree with each other. Throws Error(input) likewise.
void check_prediction(const std::filesystem::path&, const Plan&, const Prediction& again);

}  // namespace alpa
