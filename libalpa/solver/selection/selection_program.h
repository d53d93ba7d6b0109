#pragma once
#include "libalpa/base/deadline.h"
#include "libalpa/base/infinity.h"
#include "libalpa/solver/integer_program/integer_program.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

struct ProgramOutcome {
  bool finished =
      false;  ///< the bound is final: optimal within the gap, or nothing better than the incumbent exists
  bool infeasible = false;      ///< proven: no choice fits that costs the cutoff or less
  bool by_effort_alone = true;  ///< as of SelectionSolution
  double bound = 0;             ///< on the cost of every fitting choice; -infinity when the program gave none
};

struct ProgramOptions {
  double gap = 1e-6;         ///< relative to the incumbent's cost
  int max_nodes = 100'000;   ///< of each branch-and-bound tree
  double cutoff = infinity;  ///< choices that cost more are left out
};

/// Solves the network as an integer program (Alpa, OSDI'22, equation 1, with the pair variables of an edge
/// continuous and tied to its ends by their marginals). Rows of time points are added as choices are found
/// that exceed them. Offers what it finds. The network must come from presolve.
ProgramOutcome solve_as_integer_program(const SelectionNetwork&, Incumbent&, const ProgramOptions&,
                                        const Deadline&);

}  // namespace alpa
