#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/dataset/graph_source.h"

namespace alpa {

class H5RowsWriter;

/// How large and how high the graphs of a source are: what decides how they batch, and the memory for them.
/// Heights are those of find_heights().
struct GraphStatistics {
  std::vector<std::int64_t> vertices_by_height;  ///< [height]
  std::vector<std::int64_t> samples_by_height;   ///< [height of the graph], as long
  std::vector<std::int64_t> sizes;               ///< vertices that some sample has, ascending
  std::vector<std::int64_t> samples_by_size;     ///< [of sizes]
  std::int64_t labelled = 0;                     ///< vertices with a label

  std::int64_t samples() const;
  std::int64_t vertices() const;
  std::int64_t most_vertices() const;  ///< of a sample
  double mean_vertices() const;
  std::int64_t leaves() const { return vertices_by_height.empty() ? 0 : vertices_by_height[0]; }
  std::int64_t greatest_height() const { return std::ssize(vertices_by_height) - 1; }
  double mean_height() const;

  /// The share of all vertices that are of that height.
  double level_share(std::int64_t height) const;

  /// How many rounds `group` samples drawn at random take on average where a round has all vertices of one
  /// height: one more than the greatest of their heights.
  double mean_rounds(std::int64_t group) const;

  /// Vertices of the largest `group` samples together; where there are not as many, each comes again once
  /// all were there.
  std::int64_t largest(std::int64_t group) const;

  /// No `group` samples that follow each other in a run have more. They may be the end of one epoch and the
  /// beginning of the next, and have the largest of each twice.
  std::int64_t largest_in_run(std::int64_t group) const;

  bool operator==(const GraphStatistics&) const = default;
};

/// Makes statistics of graphs that come one after another.
class GraphCounts {
 public:
  void add(const VertexGraph&);
  GraphStatistics statistics() const;

 private:
  GraphStatistics so_far_;
  std::map<std::int64_t, std::int64_t> samples_by_size_;
  std::vector<std::int32_t> heights_;
};

/// Reads all samples.
GraphStatistics graph_statistics(GraphSource&);

/// Of their sizes alone, for which none is read.
GraphStatistics size_statistics(const GraphSource&);

/// Rows of the largest group of so many samples that any order of them may make.
std::int64_t largest_group(const GraphSource&, std::int64_t group, BatchingPolicy);

/// Writes them as columns of the group /statistics, with the figures that follow from them as its attributes.
/// Nothing has been appended to the file yet.
void write_statistics(H5RowsWriter&, const GraphStatistics&);

/// What write_statistics() wrote; nullopt where the file has no such group. Throws Error(input) where the
/// columns contradict each other.
std::optional<GraphStatistics> stored_statistics(const std::filesystem::path&);

/// Statistics of what open_graphs() opens: those that its file has, or of all samples.
GraphStatistics statistics_of_data(const std::string& data, const GraphLimits&);

}  // namespace alpa
