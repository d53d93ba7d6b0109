#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"

// Gradients as products of two thin matrices: PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS'19,
// algorithm 1), a step of subspace iteration for each update on the gradient G and the error E that the
// updates before have left:
//
//     P = orthonormal columns of (G + E) Q      low_rank_product, orthonormal_columns
//     N = (G + E)^T P                           low_rank_product
//     E = G + E - P N^T                         error_feedback
//     Q = N, but for columns of zeros           renewed_columns
//
// and the update goes by P Q^T. A tensor is a matrix of its leading dimensions by the others. But for the
// orthonormal columns and Q all is linear in G, E and N: devices that have terms of G add up (G + E) Q and N
// alone, and E stays with them in terms.

namespace alpa {

/// What is left of a column once those before it are taken out, as a share of it, below which it becomes
/// zeros: less is rounding of f32, of which sums of terms in any order make a few units in the last of 24
/// bits.
inline constexpr double kLeastOfColumn = 1e-5;

/// Into how many leading dimensions and others a tensor of two dimensions or more is best divided for factors
/// of that rank: those of the fewest elements, of equally few the first. 0: of less than two dimensions.
int low_rank_rows(const Shape& tensor, std::int64_t rank);

/// A tensor seen as a matrix of its first `leading` dimensions by the others.
struct LowRankExtents {
  std::int64_t rows = 1, columns = 1;
  LowRankExtents(const Shape& tensor, std::int64_t leading);
  std::int64_t factor_elements(std::int64_t rank) const { return rank * (rows + columns); }
};

}  // namespace alpa
