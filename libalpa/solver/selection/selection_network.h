#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// A strategy-selection problem in the form that the solver's steps hand to each other: time is a list of
/// points, each with its own capacity, and a node's memory is piecewise constant over them (nodes that were
/// merged have several pieces).
///
/// cost(choice) = constant + node costs + edge costs; a choice fits when at every time point the memory in
/// use is at most the capacity.
struct SelectionNetwork {
  struct Piece {
    int begin = 0, end = 0;            ///< half-open range of time points, never empty
    std::vector<std::int64_t> memory;  ///< per strategy, bytes
  };
  struct Node {
    std::vector<double> cost;   ///< per strategy; infinity forbids it
    std::vector<Piece> pieces;  ///< disjoint, in order of time
  };
  struct Edge {
    int from = 0, to = 0;
    std::vector<double> cost;  ///< row-major, [strategy of from][strategy of to]
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::int64_t> capacity;  ///< per time point, bytes
  double constant = 0;

  int strategies(int node) const { return static_cast<int>(nodes[node].cost.size()); }
  std::int64_t edge_cells() const;
};

/// The same problem with one time point between any two neighbouring ends of intervals; without a memory
/// limit, none.
SelectionNetwork selection_network(const SelectionProblem&);

/// The network with every choice fitting.
SelectionNetwork without_memory(SelectionNetwork);

/// Edges at each node, in ascending order.
std::vector<std::vector<int>> incident_edges(const SelectionNetwork&);

/// The node at the other end.
inline int other_end(const SelectionNetwork::Edge& edge, int node) {
  return edge.from == node ? edge.to : edge.from;
}

/// Adds to `costs`, per strategy of `node`, what the edge costs when the other end has `other_strategy`.
void add_edge_costs(const SelectionNetwork&, const SelectionNetwork::Edge&, int node, int other_strategy,
                    std::span<double> costs);

double network_cost(const SelectionNetwork&, const std::vector<int>& choice);

/// Capacity less the memory in use, per time point; negative where the choice does not fit.
std::vector<std::int64_t> free_memory(const SelectionNetwork&, const std::vector<int>& choice);
bool fits(const SelectionNetwork&, const std::vector<int>& choice);

/// Node costs when memory has a price per byte at each time point.
std::vector<std::vector<double>> priced_costs(const SelectionNetwork&, const std::vector<double>& price);

}  // namespace alpa
