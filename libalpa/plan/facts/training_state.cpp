#include "libalpa/plan/facts/training_state.h"

namespace alpa {
namespace {

/// The parameter that a node of the update makes anew; null: none.
const State* updated_parameter(const Placement& placement, const Node& node) {
  const Graph& graph = placement.graph();
  for (const ValueIndex operand : node.operands)
    if (const StateIndex s = placement.uses().state_at[operand]; s >= 0 && graph.states[s].is_parameter)
      return &graph.states[s];
  return nullptr;
}

}  // namespace

void for_each_training_state(const Placement& placement, StageIndex stage,
                             const std::function<void(const State&, ValueIndex, bool)>& take) {
  const Graph& graph = placement.graph();
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.phase != Phase::update || placement.stage_of_node(n) != stage) continue;
    const State* parameter = updated_parameter(placement, node);
    if (parameter == nullptr) continue;
    const Shape& shape = value_of(graph, parameter->value).type.shape;
    for (const ValueIndex operand : node.operands) {
      const Value& value = value_of(graph, operand);
      if (operand == parameter->value || value.type.shape != shape || value.kind == ValueKind::input)
        continue;
      take(*parameter, operand, value.kind == ValueKind::state);
    }
  }
}

}  // namespace alpa
