#pragma once
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "libalpa/solver/selection/dual_certificate.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// A lower bound on node and edge costs, memory left aside, for networks that are too entangled to be
/// eliminated.
///
/// Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing", 2015):
/// costs are moved between edges and nodes so that the sum of their minima rises, which is a bound at all
/// times. Node costs may change from sweep to sweep; the messages stay. Every strategy must have an allowed
/// partner on every edge (presolve leaves it so). Borrows the network; a copy shares the tables.
class MessagePassing {
 public:
  MessagePassing(const SelectionNetwork&, const std::vector<std::vector<int>>& incident);

  /// One backward and one forward pass. Returns the bound (without the network's constant), up to rounding.
  double sweep(const std::vector<std::vector<double>>& node_cost);

  /// The choice read off during the last forward pass: each node's best given those before it and the
  /// messages of those after.
  const std::vector<int>& choice() const { return choice_; }

  /// Per node, how much dearer its second best strategy was there.
  const std::vector<double>& margin() const { return margin_; }

  /// After a sweep: per node and strategy, by how much the bound rises at least when the node must take that
  /// strategy.
  std::vector<std::vector<double>> reduced_costs() const;

  /// What the edges have handed to their ends.
  std::vector<DualSolution::Moved> moved() const;

 private:
  /// An edge as one of its ends sees it.
  struct Side {
    int edge = 0, other = 0;    ///< `other`: the node at the other end
    bool is_to = false;         ///< this end is the edge's `to`
    int rows = 0, columns = 0;  ///< of the table: strategies of the earlier node, of the later with padding
    std::size_t table = 0;      ///< in tables_
    std::size_t moved = 0, moved_to_other = 0;  ///< in moved_: what the edge has handed to the ends
  };
  /// What a node does in a pass.
  struct Share {
    double of_each = 0;  ///< what each edge ahead is handed of the belief; 0: there is none
    double kept = 1;
  };

  void lay_out_sides(const std::vector<std::vector<int>>& incident);
  void fill_tables();
  void pass(bool forward);
  void visit(int node, bool forward, double* __restrict scratch, double* __restrict given);
  void collect(const Side&, int node, double* __restrict least, double* __restrict belief);
  void find_minima(const Side&, int node, double* least) const;  // per strategy of the node
  void start_beliefs(const std::vector<std::vector<double>>& node_cost);
  void decode(const std::vector<std::vector<double>>& node_cost);
  std::span<double> belief_of(int node) {
    return {belief_.data() + belief_begin_[node], static_cast<std::size_t>(network_.strategies(node))};
  }
  std::span<const Side> sides_of(int node) const {
    return {sides_.data() + side_begin_[node],
            static_cast<std::size_t>(side_begin_[node + 1] - side_begin_[node])};
  }

  const SelectionNetwork& network_;
  std::vector<int> side_begin_;                        // per node
  std::vector<Side> sides_;                            // of each node, edges in ascending order
  std::array<std::vector<Share>, 2> share_;            // per node, backward and forward
  std::shared_ptr<const std::vector<double>> tables_;  // costs of edges, rows padded by infinity
  std::vector<double> moved_;
  std::vector<std::size_t> belief_begin_;
  std::vector<double> belief_;  // node cost and what its edges moved there
  std::size_t widest_ = 0;      // row of doubles
  std::vector<int> choice_;
  std::vector<double> margin_;
};

}  // namespace alpa
