#pragma once
#include <utility>
#include <vector>

#include "libalpa/solver/selection/reduced_network.h"

namespace alpa {

/// A network while presolve works on it. Nodes and edges keep their index; those taken out are not alive.
struct Presolving {
  struct Node {
    bool alive = true;
    bool changed = true;     ///< since dominance was last looked at
    std::vector<int> label;  ///< per strategy, its index in the given network, ascending
    std::vector<char> gone;  ///< marks strategies to remove; empty when there are none
    std::vector<double> cost;
    std::vector<SelectionNetwork::Piece> pieces;
    std::vector<int> edges;  ///< alive ones, in no order that matters
  };
  struct Edge {
    bool alive = true;
    bool changed = true;   ///< since its minima were last moved out
    bool forbids = false;  ///< has an infinite entry
    int from = 0, to = 0;
    std::vector<double> cost;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::int64_t> capacity;
  bool capacity_is_limit = true;
  std::vector<int> time_point;
  double constant = 0;
  ReducedNetwork::Verdict verdict = ReducedNetwork::Verdict::open;
  Lifting lifting;

  bool open() const { return verdict == ReducedNetwork::Verdict::open; }
  int strategies(int node) const { return static_cast<int>(nodes[node].cost.size()); }
  void mark_gone(int node, int strategy);
  void change(int node);  ///< marks the node and its neighbours as changed
  void bury(int node);    ///< the node, whose edges are gone, is no longer alive
};

Presolving begin_presolve(const SelectionNetwork&);
ReducedNetwork end_presolve(Presolving);

/// The rules. Each returns whether it changed anything.
///@{
bool remove_unsupported(
    Presolving&);  ///< forbidden strategies, and those without an allowed partner on some edge
bool remove_dominated(Presolving&);
bool remove_oversized(Presolving&);  ///< strategies over capacity even when all others take the least memory
bool contract_decided_nodes(Presolving&);
bool settle_edges(
    Presolving&);  ///< adds up parallel edges, moves minima into nodes, deletes what is separable
bool eliminate_low_degrees(Presolving&);
bool settle_memory(Presolving&);  ///< moves each piece's minimum into the capacities; may find the verdict
bool drop_time_points(Presolving&);
///@}

/// Removes the strategies marked as gone from nodes and edges.
void compact_strategies(Presolving&);

/// An edge from `from` to `to` (of row-major cost) joins the alive edges.
void add_edge(Presolving&, int from, int to, std::vector<double> cost);
void remove_edge(Presolving&, int edge);

/// Memory of a node that stands for several: per strategy s of the sum, strategy (*map)[s] of each part.
using MappedPieces = std::pair<const std::vector<SelectionNetwork::Piece>*, const std::vector<int>*>;
std::vector<SelectionNetwork::Piece> sum_of_pieces(const std::vector<MappedPieces>& parts, int strategies);

}  // namespace alpa
