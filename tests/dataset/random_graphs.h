#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "libalpa/dataset/vertex_graph.h"

namespace alpa {

/// A graph of 1 to `most_vertices`: each vertex has up to `most_children` of those before it, in any order,
/// several parents or none; tokens from -1 to 9, labels from -1 to 2.
inline VertexGraph random_graph(std::mt19937& random, int most_vertices, int most_children) {
  const auto drawn = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  VertexGraph graph;
  std::vector<std::int32_t> before;
  for (int vertices = drawn(1, most_vertices); graph.vertices() < vertices;) {
    std::shuffle(before.begin(), before.end(), random);
    const int children = std::min(drawn(0, most_children), graph.vertices());
    before.push_back(graph.add(drawn(-1, 9), drawn(-1, 2), std::span(before).first(children)));
  }
  return graph;
}

}  // namespace alpa
