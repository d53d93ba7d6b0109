#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// Exact minimisation over some nodes of a network by eliminating one after the other (bucket elimination:
/// Dechter, 1999), memory left aside. Nodes whose elimination would need too large a table are left out of
/// the region ("hubs").
///
/// The order is found once; minimise() may then be called for many sets of node costs. Borrows the network.
class Elimination {
 public:
  struct Limits {
    double table_cells = 1e5;  ///< entries of one table (neighbours of the eliminated node)
    double total_work = 5e7;   ///< entries of all tables times the strategies of the eliminated nodes
  };

  /// `region`: distinct nodes. Eliminates the cheapest first; takes the dearest out as a hub where a table
  /// gets too large, and, once the work is used up, all nodes that are left.
  Elimination(const SelectionNetwork&, const std::vector<std::vector<int>>& incident,
              const std::vector<int>& region, Limits);

  const std::vector<int>& members() const { return members_; }  ///< eliminated nodes, in order
  const std::vector<int>& hubs() const { return hubs_; }
  double work() const { return work_; }

  /// Sets `choice` of the members to a best one for `node_cost` (indexed by node) and the edges among
  /// members, and returns that minimum. Costs of edges that leave the members are for the caller to put into
  /// `node_cost`.
  double minimise(const std::vector<std::vector<double>>& node_cost, std::vector<int>& choice);

  /// After minimise() with the same costs, when that was finite: per strategy of each member, the minimum
  /// when that member must take it. Indexed by node; empty for others. Costs about as much as minimise().
  std::vector<std::vector<double>> min_marginals(const std::vector<std::vector<double>>& node_cost);

 private:
  struct Factor {
    const double* data = nullptr;  // an edge's costs; null: the table of step `step`
    int step = -1;
    std::ptrdiff_t own_stride = 0;       // per strategy of the eliminated node
    std::vector<std::ptrdiff_t> stride;  // per scope variable, 0 where the factor does not depend on it
  };
  struct Step {
    int node = 0;
    std::vector<int> scope;   // neighbours at elimination
    std::vector<int> extent;  // their numbers of strategies
    std::vector<Factor> factors;
    std::vector<double> table;  // over the scope: least cost of what was eliminated up to here
    std::vector<int> best;
  };

  void find_order(const std::vector<std::vector<int>>& incident, const std::vector<int>& region, Limits);
  void place_factors(const std::vector<std::vector<int>>& incident);
  void fill(Step&, const std::vector<double>& own_cost);
  void fill_scratch(const Step&, int strategy, double own_cost);

  const SelectionNetwork& network_;
  std::vector<int> members_, hubs_;
  std::vector<Step> steps_;
  std::vector<double> scratch_;
  double work_ = 0;
};

}  // namespace alpa
