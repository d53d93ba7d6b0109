#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// Notes VertexRows at each node that can do with the rows that are there, and at nodes that run rounds the
/// rows of each round of a group in typical data: `typical`, or rounds_of_full_groups() where that is empty.
/// Comes last: nodes that are made of others do not keep what is noted at these.
Graph with_vertex_rows(Graph, std::int64_t group, std::vector<std::int64_t> typical);

/// What a graph whose inputs are vertices takes of samples.
struct VertexInputs {
  std::int64_t vocabulary = 0, classes = 0;  ///< tokens and labels are less
  std::int64_t children = 0;                 ///< of a vertex, at most
  std::int64_t vertices = 0;                 ///< rows for each sample
};
VertexInputs vertex_inputs(const Graph&);

}  // namespace alpa
