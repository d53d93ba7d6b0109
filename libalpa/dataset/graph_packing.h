#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/dataset/vertex_graph.h"

namespace alpa {

/// What a group of samples becomes. All that is in the spans is replaced. There are as many rows as vertices
/// at most; a vertex has one row, and rows are numbered round by round, those of a round by sample, then by
/// vertex.
struct PackedRows {
  std::span<std::int32_t> tokens;  ///< [row]; of a vertex without a token -1, of no vertex 0
  std::span<std::int32_t> labels;  ///< [row]; of no vertex -1
  /// [row, most children + 1]: rows of the children, in the order of the data, then -1; in the last column,
  /// row by row, where each round ends, ascending, then 0.
  std::span<std::int32_t> structure;
};

/// Packs groups of samples, one after another, in memory that it keeps: groups of as many rows as the first
/// take no more.
class GraphPacker {
 public:
  /// The number of rounds. What is to be padded is (pad_chains). Vertices have `most_children` at most, as
  /// the limits say that the samples were opened with. Throws Error(input) that names the sample with which
  /// there are more vertices than rows.
  int pack(std::span<const VertexGraph* const> samples, BatchingPolicy policy, int most_children,
           const PackedRows& rows);

 private:
  void reserve(const PackedRows& rows, BatchingPolicy policy);

  /// Fills round_of_; the result is the number of rounds.
  int find_rounds(std::span<const VertexGraph* const> samples, BatchingPolicy policy);
  int find_rounds_of_agenda(std::span<const VertexGraph* const> samples);
  void find_parents(std::span<const VertexGraph* const> samples);

  // [vertex of the group]: those of a sample follow those of the sample before.
  std::vector<std::int32_t> round_of_, row_of_;
  std::vector<std::int32_t> ends_;  ///< [round]

  // Of the agenda.
  std::vector<std::int32_t> waits_for_;              ///< [vertex] children that have no round yet
  std::vector<std::int32_t> parents_, parent_ends_;  ///< as children of a VertexGraph
  std::vector<std::int32_t> ready_[2], taken_;       ///< [signature] vertices; those of the round at hand
};

}  // namespace alpa
