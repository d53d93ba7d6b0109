#pragma once
#include <span>

#include "libalpa/dataset/graph_source.h"

namespace alpa {

/// Throws Error(input) that names the first sample whose vertices are not one chain, each the child of the
/// next. Reads all samples.
void check_chains(GraphSource&);

/// Makes all chains as long as the longest, by vertices without token or label that follow each other.
void pad_chains(std::span<VertexGraph>);

}  // namespace alpa
