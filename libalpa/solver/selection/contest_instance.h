#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/solver/selection/integer_lists.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

__extension__ typedef __int128 Int128;

/// A strategy-selection problem as the ASPLOS/EuroSys 2025 contest on intra-operator parallelism publishes
/// them (github.com/google/iopddl), and its costs as they stand in the file. There 10^18 is added like every
/// other cost, and so avoided; the problem forbids what costs as much or more.
struct ContestInstance {
  SelectionProblem problem;
  IntegerLists node_costs, edge_costs;
};

/// Reads JSON, plain or compressed by gzip. Throws Error(input) where the file is missing, not JSON, or not
/// an instance, and says where.
ContestInstance read_contest_instance(const std::filesystem::path&);

/// The contest's cost of a choice; no sum of costs of 64 bits overflows.
Int128 contest_cost(const ContestInstance&, const std::vector<int>& choice);

std::string decimal_text(Int128);

}  // namespace alpa
