#pragma once
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// Who uses what in a graph, worked out once.
struct GraphUses {
  explicit GraphUses(const Graph&);  ///< keeps a reference

  const Graph& graph;
  std::vector<std::vector<int>> users;  ///< [value] -> nodes, each once, without the global gradient norm
  std::vector<int> state_at;            ///< [value] -> the state that starts as it, or -1
  std::vector<int> state_after;         ///< [value] -> the state that becomes it, or -1
  std::vector<bool> summed_over_step;   ///< [value] the loss, and what metrics count
  int norm = -1;                        ///< the node of the global gradient norm; -1: there is none
  /// [node] -> operands whose squares the global gradient norm takes in the layout in which this node takes
  /// them: of several updates that use a gradient, the last.
  std::vector<std::vector<int>> measured;

  const std::vector<int>& users_of(int value) const { return users[value]; }
  int state_after_value(int value) const { return state_after[value]; }
};

/// The phase in which a value goes to other stages: states once a step, as sums of gradients do.
Phase phase_of_crossing(const Graph&, int value);

/// Updates a state where it rests: its first result is the state's next value.
bool updates_in_place(const Node&);

}  // namespace alpa
