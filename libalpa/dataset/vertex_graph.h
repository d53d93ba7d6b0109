#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace alpa {

/// One sample of a model over graphs: vertices in an order in which children come before their parents. A
/// vertex may have several parents.
///
///     "It 's good" as a tree: vertices It, 's, good, ('s good), (It ('s good))
///     child_ends 0 0 0 2 4, children 1 2 0 3
struct VertexGraph {
  std::vector<std::int32_t> tokens;      ///< [vertex]; -1: none
  std::vector<std::int32_t> labels;      ///< [vertex]; -1: none
  std::vector<std::int32_t> child_ends;  ///< [vertex] where its children in `children` end; they begin where
                                         ///< those of the vertex before end
  std::vector<std::int32_t> children;    ///< vertices, those of a vertex in the order of the data

  std::int32_t vertices() const { return static_cast<std::int32_t>(child_ends.size()); }

  std::span<const std::int32_t> children_of(std::int32_t vertex) const {
    const std::int32_t begin = vertex == 0 ? 0 : child_ends[vertex - 1];
    return std::span(children).subspan(begin, child_ends[vertex] - begin);
  }

  /// Adds a vertex, whose children are there; the result is its number.
  std::int32_t add(std::int32_t token, std::int32_t label, std::span<const std::int32_t> of_children = {}) {
    tokens.push_back(token);
    labels.push_back(label);
    children.insert(children.end(), of_children.begin(), of_children.end());
    child_ends.push_back(static_cast<std::int32_t>(children.size()));
    return vertices() - 1;
  }

  /// Keeps its memory.
  void clear() {
    tokens.clear();
    labels.clear();
    child_ends.clear();
    children.clear();
  }

  bool operator==(const VertexGraph&) const = default;
};

/// Fills `heights`, [vertex]: 0 for one without children, else one more than the greatest of its children's.
/// The result is the greatest, the height of the graph; -1 without vertices.
std::int32_t find_heights(const VertexGraph&, std::span<std::int32_t> heights);

}  // namespace alpa
