#pragma once
#include <string>
#include <vector>

#include "libalpa/graph/op.h"

namespace alpa {

/// Far above the steps of finite differences and the rounding to bf16, so that no choice depends on them.
inline constexpr double kLogitMargin = 0.05;

/// One call that an operator's kernels are checked with.
struct OpCase {
  std::string op;

  /// A letter and an extent per operand, as "t[2x3] i[2]": t f32, bf16 and, where the device has it,
  /// f16 in turn, f f32, p f32 and positive, b as t but of 16 bits, i ids from -1 up to `ids`, s a scalar of
  /// type t, l logits of type t whose rows keep kLogitMargin between any two, r routes: ids below `ids`, none
  /// twice in a group (dimension 0), some of them -1, g the structure of graphs (ops/vertex.h) in groups of
  /// the attribute size_b, d where the document of each place of a row begins, of some `ids` places each.
  std::string operands;
  Attributes attributes;
  int ids = 0;
};

/// Small and mostly odd: few extents are multiples of a vector, some are longer than the blocks that kernels
/// work in.
std::vector<OpCase> cases_of(const OpDef&);

/// Gradients of several dimensions as matrices, cut in both places; factors of one column and of more.
void add_low_rank_cases(std::vector<OpCase>&);

/// Rows of a table by their ids: fewer ids than rows, and more.
void add_row_cases(std::vector<OpCase>&);

/// Tokens that come one at a time and several, some of which are not there.
void add_decoding_cases(std::vector<OpCase>&);

/// Sequences of several documents, shorter and longer than the blocks that kernels work in.
void add_document_cases(std::vector<OpCase>&);

/// Vertex functions: of chains, trees and graphs whose vertices have several parents.
void add_vertex_cases(std::vector<OpCase>&);

std::string case_text(const OpCase&);

/// Names of all operators in the order of the catalog, to be the parameters of test suites.
std::vector<std::string> op_names();

/// Names a test by its parameter, an operator's name.
inline constexpr auto kOpName = [](const auto& test) -> std::string { return test.param; };

}  // namespace alpa
