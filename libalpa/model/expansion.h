#pragma once
#include <cstdint>
#include <optional>

#include "libalpa/graph/graph.h"
#include "libalpa/model/definition.h"
#include "libalpa/model/expression.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// The values of a model's dimensions and constants, of `sequence` and `group_samples`. Those that fail are
/// noted and left out.
Numbers model_numbers(const ModelDefinition&, ModelFaults&);

/// ModelDefinition::paper_flops, worked out; nullopt where the file has none, or one that fails (noted).
std::optional<double> paper_flops(const ModelDefinition&, ModelFaults&);

/// Unfolds a definition, whose names have been checked, into its forward graph. A step that fails is noted
/// and what depends on it left out; the graph may be used only where no fault was noted.
Graph expanded_graph(const ModelDefinition&, std::int64_t samples, bool training, ModelFaults&);

}  // namespace alpa
