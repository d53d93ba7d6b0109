#include "libalpa/dataset/vertex_graph.h"

#include <algorithm>
#include <cassert>

namespace alpa {

std::int32_t find_heights(const VertexGraph& graph, std::span<std::int32_t> heights) {
  assert(std::ssize(heights) == graph.vertices());
  std::int32_t greatest = -1;
  for (std::int32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
    std::int32_t height = 0;
    for (const std::int32_t child : graph.children_of(vertex)) height = std::max(height, heights[child] + 1);
    heights[vertex] = height;
    greatest = std::max(greatest, height);
  }
  return greatest;
}

}  // namespace alpa
