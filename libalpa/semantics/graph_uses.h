#pragma once
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// Who uses what in a graph, worked out once.
struct GraphUses {
  explicit GraphUses(const Graph&);  ///< keeps a reference

  const Graph& graph;
  Indexed<ValueIndex, std::vector<NodeIndex>> users;  ///< each once, without the global gradient norm
  Indexed<ValueIndex, StateIndex> state_at;           ///< the state that starts as it, or -1
  Indexed<ValueIndex, StateIndex> state_after;        ///< the state that becomes it, or -1
  Indexed<ValueIndex, bool> summed_over_step;         ///< the loss, and what metrics count
  NodeIndex norm;  ///< the node of the global gradient norm; -1: there is none
  /// Whether an update waits for the norm: it clips by it, or changes nothing where gradients are not finite,
  /// which those of f16 may be at any time. Others are none of the norm's concern: where it is not finite,
  /// training ends.
  bool updates_wait = false;
  /// Operands whose squares the global gradient norm takes in the layout in which this node takes
  /// them: of several updates that use a gradient, the last.
  Indexed<NodeIndex, std::vector<int>> measured;
  /// Nodes of the forward that are worth running again in the backward in place of keeping what they make.
  /// They are cheap: each of their loops runs over a dimension of a result, as those of elementwise operators
  /// and norms do, so that work grows with what is made, and no sum is ever sent. And they run on what the
  /// backward of their layer has anyway: states, what it takes itself, what such nodes of the layer make. So
  /// nothing is kept that would not be kept otherwise. (Korthikanti et al., "Reducing Activation
  /// Recomputation in Large Transformer Models", 2022, with an operator's rule in place of their list.)
  Indexed<NodeIndex, bool> is_repeatable;

  const std::vector<NodeIndex>& users_of(ValueIndex value) const { return users[value]; }
  StateIndex state_after_value(ValueIndex value) const { return state_after[value]; }

 private:
  void find_repeatable();
  bool is_at_hand(ValueIndex, int layer) const;  ///< in the backward of that layer, whatever is kept for it
};

/// The phase in which a value goes to other stages: states once a step, as sums of gradients do.
Phase phase_of_transfer(const Graph&, ValueIndex value);

/// Whether nothing but the node that updates it takes a state, as optimizer states and master weights.
bool is_of_update_alone(const GraphUses&, const State&);

/// Whether a state may rest in the host's memory: it is of its update alone, or a parameter that one layer
/// alone takes. (Others have copies where their users are.)
bool may_rest_on_host(const GraphUses&, const State&);

/// The values of all such states, sorted.
std::vector<ValueIndex> states_of_updates_alone(const GraphUses&);
std::vector<ValueIndex> states_that_may_rest_on_host(const GraphUses&);

/// OpDef::holds_gradient_back of its operator: a gradient of this step waits for a later one.
bool holds_gradient_back(const Node&);

/// Updates a state where it rests: its first result is the state's next value.
bool updates_in_place(const Node&);

}  // namespace alpa
