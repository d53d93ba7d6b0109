#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

class SelectionCache;
class StopRequest;

/// The strategy-selection problem: choose one strategy per node so that the sum of node and edge costs is
/// least, subject to memory over time. Costs are seconds (any unit works), memory is bytes.
///
/// (Alpa, OSDI'22, section 4.2, as an integer program; the published contest form of the same problem is read
/// by tests.) Infinite costs are allowed and mean "forbidden"; they never reach a solver as numbers.
struct SelectionProblem {
  struct Memory {
    int begin = 0, end = 0;           ///< half-open interval of time points; empty: none
    std::vector<std::int64_t> bytes;  ///< per strategy, held all that time
  };
  struct Node {
    std::vector<double> cost;    ///< per strategy; infinity forbids it
    std::vector<Memory> memory;  ///< adds up where intervals meet
  };
  struct Edge {
    int from = 0, to = 0;
    std::vector<double> cost;  ///< row-major, [strategy of from][strategy of to]; infinity forbids the pair
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;         ///< parallel edges add up; from == to is not allowed
  std::int64_t memory_limit = -1;  ///< bytes at every time point; negative: none
};

/// What the most demanding strategies of all nodes may hold at one time: sums of memory are of 64 bits.
inline constexpr std::int64_t kMostSelectionBytes = std::int64_t{1} << 61;

/// An effort that only time ends.
inline constexpr std::int64_t kUnlimitedEffort = std::numeric_limits<std::int64_t>::max();

/// How far a search is.
struct SelectionProgress {
  double seconds = 0;              ///< since it began
  double cost = infinity;          ///< of the best choice so far; infinite: none yet
  double lower_bound = -infinity;  ///< proven so far
};

struct SelectionOptions {
  double gap = 1e-6;                ///< relative gap at which a solution counts as optimal
  std::int64_t effort = 1'000'000;  ///< bound on search effort (branch-and-bound nodes, moves); deterministic
  double time_limit_s = 120;        ///< safety cap in wall seconds; hitting it is reported in `proof`
  std::int64_t most_cbc_cells =
      60'000;                   ///< pairs of strategies left in the end that are CBC's to choose from;
                                ///< with more, its first relaxation takes minutes, whatever the effort
  std::vector<int> start = {};  ///< a choice to improve on, where it is allowed and fits; empty: none
  double cutoff = infinity;     ///< choices that cost as much or more are not wanted
  /// A choice that costs no more than that need only be within `gap_of_enough`.
  double enough = -infinity, gap_of_enough = 0;
  const StopRequest* stop = nullptr;  ///< ends the search as the time limit does; null: nothing does
  int threads = 1;                    ///< of the search; the result is the same for any number
  bool certify = false;               ///< wants a certified_bound, which takes some time on small problems
  SelectionCache* cache = nullptr;    ///< of what was solved before; null: none
  std::function<void(const SelectionProgress&)> progress = {};  ///< called now and then, from one thread
};

struct SelectionSolution {
  bool feasible = false;
  std::vector<int> choice;  ///< per node; empty when infeasible
  double cost = 0;
  double lower_bound = 0;  ///< proven, same unit as cost, as far as floating point of CBC and of sums goes
  /// Proven by a dual solution that is evaluated in integers (dual_certificate.h): where costs are integers
  /// and their sums stay below 2^53, no rounding touches it. -infinity: none was asked for or found.
  double certified_bound = -infinity;
  std::int64_t peak_memory = 0;
  std::string proof;  ///< "optimal", "gap 1.2 %, time limit", "infeasible: memory", "beyond the cutoff" ...
  bool hit_time_limit = false;
  bool by_effort_alone = true;    ///< no clock and no failed process had a part in it
  std::int64_t least_memory = 0;  ///< when infeasible by memory: a lower bound on the peak any choice needs

  double gap() const { return cost > 0 ? (cost - lower_bound) / cost : 0; }
};

}  // namespace alpa
