#pragma once
#include "libalpa/graph/graph.h"

namespace alpa {

/// The graph with every pair of nodes done as one where the catalog has an operator that does both
/// (`OpDef::fuses`): of one layer and phase, the first's result 0 used by the second alone. What is between
/// them is then neither written nor read; nor is what is between such a node and a third, where an operator
/// does all three. A forward graph is fused before it is differentiated, so that gradients are those of what
/// runs, and once more after that.
Graph with_fused_operators(Graph, OpCatalog);

}  // namespace alpa
