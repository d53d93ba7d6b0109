#pragma once
#include "libalpa/solver/selection/network_solution.h"
#include "libalpa/solver/selection/selection_network.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// In this order: presolve; the cheapest choice when memory is left aside, which is the answer if it
/// fits; prices for memory; presolve again without the strategies that the bound rules out, as long as that
/// helps; search in neighbourhoods; an integer program of what is left where that is small; then, or at once
/// where the network is large, the search that goes on until effort or time are spent. Ends as soon as the
/// gap is closed.
NetworkSolution solve_network(const SelectionNetwork&, const SelectionOptions&);

}  // namespace alpa
