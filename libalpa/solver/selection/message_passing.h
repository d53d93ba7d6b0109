#pragma once
#include <memory>
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
  struct Edge {
    std::vector<double> to_from, to_to;  // what has been moved from the edge to its ends
  };

  void pass(bool forward);
  void collect(int edge, int node);  // moves the edge's minima at `node` into the node
  void hand_out(int edge, int node, double share);
  void decode(int node, const std::vector<double>& own_cost);

  const SelectionNetwork& network_;
  const std::vector<std::vector<int>>& incident_;
  std::vector<Edge> edges_;
  std::shared_ptr<const std::vector<std::vector<double>>> transposed_;  // costs of edges, rows over `to`
  std::vector<std::vector<double>> belief_;  // node cost and what its edges moved there
  std::vector<double> least_;                // scratch
  std::vector<int> choice_;
  std::vector<double> margin_;
};

}  // namespace alpa
