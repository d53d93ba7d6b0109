#pragma once
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// Grows with every change after which some problem and effort have another solution: what was solved before
/// is then solved anew.
inline constexpr int kSolverVersion = 1;

/// Solves by exact presolve, prices on memory, searches in neighbourhoods, and CBC on what is small. Same
/// input and effort, same output, whatever the number of threads, unless time runs out. A solution never
/// costs more than `start`. Where all choices are proven to cost the cutoff or more, the search ends early:
/// the solution is then not feasible, and its lower bound is at least the cutoff. Throws Error(input) on a
/// malformed problem (sizes, indices, NaN). What the cache of the options knows is taken from there, and what
/// is solved by effort alone is kept in it.
SelectionSolution solve_selection(const SelectionProblem&, const SelectionOptions& = {});

/// The cost of a choice, infinity when forbidden; and its peak memory.
double selection_cost(const SelectionProblem&, const std::vector<int>& choice);
std::int64_t selection_peak_memory(const SelectionProblem&, const std::vector<int>& choice);

}  // namespace alpa
