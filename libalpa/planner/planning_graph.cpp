#include "libalpa/planner/planning_graph.h"

#include <algorithm>

namespace alpa {

PlanningGraph prepare(const Graph& graph) {
  PlanningGraph planning{&graph, classify_layers(graph), factor_roles(graph), {}, {}, {}, {}};
  planning.consumers.resize(graph.values.size());
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const Node& node = node_of(graph, n);
    if (node.op->reduces_globally) continue;
    for (const int operand : node.operands) {
      auto& users = planning.consumers[static_cast<std::size_t>(operand)];
      if (users.empty() || users.back() != n) users.push_back(n);
    }
  }
  planning.measured.resize(graph.nodes.size());
  for (const Node& norm : graph.nodes) {
    if (!norm.op->reduces_globally) continue;
    for (const int gradient : norm.operands) {
      const std::vector<int>& users = planning.consumers[static_cast<std::size_t>(gradient)];
      if (users.empty()) continue;
      const std::vector<int>& operands = node_of(graph, users.back()).operands;
      planning.measured[static_cast<std::size_t>(users.back())].push_back(
          static_cast<int>(std::find(operands.begin(), operands.end(), gradient) - operands.begin()));
    }
  }
  planning.state_at.assign(graph.values.size(), -1);
  planning.state_after.assign(graph.values.size(), -1);
  for (int s = 0; s < static_cast<int>(graph.states.size()); ++s) {
    const State& state = graph.states[static_cast<std::size_t>(s)];
    planning.state_at[static_cast<std::size_t>(state.value)] = s;
    if (state.next >= 0) planning.state_after[static_cast<std::size_t>(state.next)] = s;
  }
  return planning;
}

}  // namespace alpa
