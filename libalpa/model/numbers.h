#pragma once
#include <optional>

#include "libalpa/model/definition.h"
#include "libalpa/model/expression.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// The values of a model's dimensions and constants, of `sequence` and `group_samples`. Those that fail are
/// noted and left out.
Numbers model_numbers(const ModelDefinition&, ModelFaults&);

/// ModelDefinition::paper_flops, worked out; nullopt where the file has none, or one that fails (noted).
std::optional<double> paper_flops(const ModelDefinition&, ModelFaults&);

}  // namespace alpa
