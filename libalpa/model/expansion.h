#pragma once
#include <cstdint>

#include "libalpa/graph/graph.h"
#include "libalpa/model/definition.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// Unfolds a definition, whose names have been checked, into its forward graph. A step that fails is noted
/// and what depends on it left out; the graph may be used only where no fault was noted.
Graph expanded_graph(const ModelDefinition&, std::int64_t samples, bool training, ModelFaults&);

}  // namespace alpa
