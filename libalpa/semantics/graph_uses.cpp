#include "libalpa/semantics/graph_uses.h"

#include <algorithm>

namespace alpa {

GraphUses::GraphUses(const Graph& of)
    : graph(of),
      users(of.values.size()),
      state_at(of.values.size()),
      state_after(of.values.size()),
      summed_over_step(of.values.size()),
      measured(of.nodes.size()) {
  for (const NodeIndex n : of.nodes.indices()) {
    const Node& node = node_of(of, n);
    if (node.op->reduces_globally) continue;
    for (const ValueIndex operand : node.operands) {
      std::vector<NodeIndex>& so_far = users[operand];
      if (so_far.empty() || so_far.back() != n) so_far.push_back(n);
    }
  }
  for (const StateIndex s : of.states.indices()) {
    const State& state = of.states[s];
    state_at[state.value] = s;
    if (state.next >= 0) state_after[state.next] = s;
  }
  if (of.loss >= 0) summed_over_step[of.loss] = true;
  for (const Metric& metric : of.metrics)
    for (const ValueIndex value : metric.values) summed_over_step[value] = true;
  if (of.gradient_square_sum >= 0) norm = value_of(of, of.gradient_square_sum).producer;
  if (norm < 0) return;
  for (const ValueIndex gradient : node_of(of, norm).operands) {
    if (users_of(gradient).empty()) continue;
    const NodeIndex last = users_of(gradient).back();
    const std::vector<ValueIndex>& operands = node_of(of, last).operands;
    measured[last].push_back(static_cast<int>(std::ranges::find(operands, gradient) - operands.begin()));
  }
}

Phase phase_of_transfer(const Graph& graph, ValueIndex value) {
  const NodeIndex producer = value_of(graph, value).producer;
  if (producer < 0) return Phase::update;
  const Node& maker = node_of(graph, producer);
  return maker.op->sums_micro_batches ? Phase::update : maker.phase;
}

bool updates_in_place(const Node& node) { return node.phase == Phase::update && node.op->overwrites[0] >= 0; }

}  // namespace alpa
