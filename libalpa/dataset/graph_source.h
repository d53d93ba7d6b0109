#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "libalpa/dataset/vertex_graph.h"

namespace alpa {

/// What a model takes of graphs.
struct GraphLimits {
  std::int64_t vocabulary = 0;  ///< tokens are from -1 (none) to vocabulary - 1
  std::int64_t classes = 0;     ///< labels are from -1 (none) to classes - 1
  std::int64_t children = 0;    ///< the most that a vertex may have
};

/// Vertices of one sample, at most: what is held of one in memory is bounded by it.
inline constexpr std::int64_t kMostVertices = 1 << 24;

/// Samples that are graphs. It is only read.
class GraphSource {
 public:
  virtual ~GraphSource() = default;

  virtual std::int64_t samples() const = 0;

  /// Vertices of a sample, at least 1, and how many of them have a label. Both are known without reading it.
  virtual std::int32_t vertices(std::int64_t sample) const = 0;
  virtual std::int32_t labelled(std::int64_t sample) const = 0;

  /// As of a TokenSource.
  virtual bool can_read_ahead() const { return true; }
  virtual std::int64_t held_bytes() const { return 0; }

  /// Replaces what `into` has, in its memory where that is enough. One caller at a time. Throws Error(input)
  /// or Error(run_time) where a file cannot be read any more.
  virtual void read(std::int64_t sample, VertexGraph& into) = 0;

  virtual std::string description() const = 0;  ///< for the log
};

/// Opens what `--data` names of a model over graphs:
///   - "synthetic-trees[:SAMPLES]", "complete-trees:LEAVES[:SAMPLES]", "chains[:SAMPLES]": drawn
///     (synthetic_trees.h), 8544 samples unless more is said;
///   - an HDF5 file of columns that hold the samples' vertices one after another, children before parents:
///         /offsets       [samples + 1] where each sample's begin; the last is the number of all
///         /tokens        [vertices], -1: none
///         /labels        [vertices], -1: none
///     and who is whose child, by numbers within the sample, as one of
///         /parents       [vertices], -1: none; children are in the order of the vertices
///         /edges         [edges, 2] child and parent, with
///         /edge_offsets  [samples + 1]; children are in the order of their edges.
/// All of it is looked through now, in one pass that holds the largest sample beside a few numbers for each.
/// Throws Error(input) that names file, dataset, sample and vertex, what was expected and what to do.
std::unique_ptr<GraphSource> open_graphs(const std::string& data, const GraphLimits&);

}  // namespace alpa
