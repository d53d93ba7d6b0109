#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/graph/attributes.h"
#include "libalpa/graph/sharding_rule.h"

// Rows of vertices of graphs that come with the data (Cavs, ATC'18, section 3.2): a tensor [b v ...] of b
// samples has room for v vertices each. The vertices of `group` consecutive samples take the first of their
// group * v rows, and the rest of these rows means nothing. Operators that work on each row by itself, before
// the rounds of a vertex function or after them, and sums over rows need not look at the rest.

namespace alpa {

/// What a node on rows of vertices has in its attributes.
struct VertexRows {
  int operand = 0;           ///< whose first two dimensions are those of samples and vertices
  std::int64_t group = 1;    ///< samples
  std::int64_t typical = 0;  ///< rows of a group that are there in typical data
};

/// nullopt: the node takes whatever is in its operands.
std::optional<VertexRows> vertex_rows_of(const Attributes&);
void set_vertex_rows(Attributes&, const VertexRows&);
Attributes without_vertex_rows(Attributes);

/// The factors of samples and of vertices in an operator's rule.
struct RowFactors {
  int samples = -1, vertices = -1;

  /// Whether they lead that tensor, each a dimension by itself.
  bool lead(const std::vector<DimensionFactors>& tensor) const;
  bool are_in(const DimensionFactors&) const;
};

/// nullopt: the first two dimensions of that operand are not one factor each.
std::optional<RowFactors> row_factors(const ShardingRule&, int operand);

/// Has samples split by whole groups, and vertices not at all.
void split_by_groups(ShardingRule&, const VertexRows&);

/// Of a node that runs rounds: the rows of each round of a group in typical data; empty: nothing was noted.
std::vector<std::int64_t> typical_rounds_of(const Attributes&);
std::int64_t rows_of(std::span<const std::int64_t> rounds);  ///< of all of them

void set_typical_rounds(Attributes&, const std::vector<std::int64_t>&);

/// The same where nothing is known of the data, of `group` samples with room for v vertices each, structure
/// [b v k+1]: all rows are taken. Chains of v vertices where a vertex has one child at most, else trees as
/// high as those of labelled sentences (facts of the Stanford sentiment treebank).
std::vector<std::int64_t> rounds_of_full_groups(const Shape& structure, std::int64_t group);

}  // namespace alpa
