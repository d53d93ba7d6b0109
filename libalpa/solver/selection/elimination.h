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
    bool all_or_none = false;  ///< with hubs there are no members
  };

  /// `region`: distinct nodes. Eliminates the cheapest first; takes the dearest out as a hub where a table
  /// gets too large, and, once the work is used up, all nodes that are left.
  Elimination(const SelectionNetwork&, const std::vector<std::vector<int>>& incident,
              const std::vector<int>& region, Limits);

  Elimination(const Elimination&) = delete;
  Elimination& operator=(const Elimination&) = delete;

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
    const double* data = nullptr;  ///< an edge's costs, in tables_; null: the table of step `step`
    int step = -1;
    std::ptrdiff_t own_stride = 0;       ///< per strategy of the eliminated node
    std::vector<std::ptrdiff_t> stride;  ///< per scope variable, 0 where the factor does not depend on it
    std::vector<int> places;             ///< of the entries of a row, where it is another step's table
  };
  struct Step {
    int node = 0;
    std::vector<int> scope;   ///< neighbours at elimination, in the order in which they go themselves
    std::vector<int> extent;  ///< their numbers of strategies
    std::size_t outer = 0;    ///< of the scope, those before a row
    std::ptrdiff_t row = 1;   ///< entries of the rows that the table is filled by
    std::vector<Factor> factors;
    std::vector<double> table;  ///< over the scope: least cost of what was eliminated up to here

    std::vector<std::ptrdiff_t> stride_in_row() const;
  };

  void find_order(const std::vector<std::vector<int>>& incident, const std::vector<int>& region, Limits);
  void place_factors(const std::vector<std::vector<int>>& incident);
  static void choose_rows(Step&);
  static std::vector<int> places_in_row(const Step&, const Factor&);
  Factor factor_of(const SelectionNetwork::Edge&, const Step&);
  const double* table_of(const Factor&) const;
  void fill(Step&, const std::vector<double>& own_cost);
  int best_strategy(const Step&, const std::vector<double>& own_cost, const std::vector<int>& choice) const;

  const SelectionNetwork& network_;
  std::vector<int> members_, hubs_;
  std::vector<Step> steps_;
  std::vector<int> step_of_;                 ///< [node] -1: none
  std::vector<std::vector<double>> tables_;  ///< of edges
  double work_ = 0;
};

}  // namespace alpa
