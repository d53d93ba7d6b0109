#pragma once
#include <array>

#include "libalpa/program/order/simulate.h"

namespace alpa {

/// What a mesh's time in a step goes into. What is done once in a step, not for each micro-batch, is `update`
/// (computation: optimizer, conversions of types) or `synchronisation` (the sums and gathers of gradients,
/// parameters and norms).
enum class StepTerm {
  forward,         ///< computation of the forward
  backward,        ///< of the backward, with what it computes again
  all_reduce,      ///< collectives for each micro-batch
  all_gather,      ///< likewise, to the next two
  reduce_scatter,  ///< likewise
  all_to_all,      ///< likewise
  shift,           ///< tiles that go round an axis (ring attention)
  transfers,       ///< messages between stages, moves between memories
  update,
  synchronisation,
  waiting,  ///< for other meshes: the bubble, and links that others use
};
inline constexpr std::size_t kStepTerms = 11;
const char* step_term_name(StepTerm);  ///< "all-reduce"

/// Seconds by StepTerm.
struct StepTerms : std::array<double, kStepTerms> {
  double& operator[](StepTerm t) { return array::operator[](static_cast<std::size_t>(t)); }
  double operator[](StepTerm t) const { return array::operator[](static_cast<std::size_t>(t)); }
  double total_s() const;
};

/// Every term there is, in that order.
std::array<StepTerm, kStepTerms> step_terms();

/// Of each mesh; they add up to the step, but for rounding. `timeline` is that of the program with these
/// costs, its lanes joined.
Indexed<MeshIndex, StepTerms> terms_of_meshes(const Program&, const Timeline& timeline, const CostModel&);

/// Means over the devices of all meshes, which add up to the step too.
StepTerms mean_terms(const Program&, const Indexed<MeshIndex, StepTerms>&);

}  // namespace alpa
