#include "libalpa/semantics/graph_uses.h"

#include <algorithm>
#include <array>

namespace alpa {
namespace {

/// Each of its loops runs over a dimension of some result.
bool is_cheap(const Graph& graph, const Node& node) {
  const std::vector<TensorType> types = operand_types(graph, node);
  const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
  const int results = static_cast<int>(rule.results.size());
  for (int factor = 0; factor < std::ssize(rule.factors); ++factor) {
    bool is_in_result = false;
    for (int r = 0; r < results; ++r) is_in_result = is_in_result || !rule.reduces(r, factor);
    if (!is_in_result) return false;
  }
  return true;
}

}  // namespace

GraphUses::GraphUses(const Graph& of)
    : graph(of),
      users(of.values.size()),
      state_at(of.values.size()),
      state_after(of.values.size()),
      summed_over_step(of.values.size()),
      measured(of.nodes.size()),
      is_repeatable(of.nodes.size()) {
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
  find_repeatable();
  if (of.loss >= 0) summed_over_step[of.loss] = true;
  for (const Metric& metric : of.metrics)
    for (const ValueIndex value : metric.values) summed_over_step[value] = true;
  if (of.gradient_square_sum >= 0) norm = value_of(of, of.gradient_square_sum).producer;
  if (norm < 0) return;
  updates_wait =
      std::ranges::any_of(of.values, [](const Value& value) { return value.type.dtype == DType::f16; }) ||
      gradient_clip(of) > 0;
  for (const ValueIndex gradient : node_of(of, norm).operands) {
    if (users_of(gradient).empty()) continue;
    const NodeIndex last = users_of(gradient).back();
    const std::vector<ValueIndex>& operands = node_of(of, last).operands;
    measured[last].push_back(static_cast<int>(std::ranges::find(operands, gradient) - operands.begin()));
  }
}

bool GraphUses::is_at_hand(ValueIndex v, int layer) const {
  const Value& value = value_of(graph, v);
  if (value.kind == ValueKind::state) return true;
  const NodeIndex maker = value.producer;
  if (maker >= 0 && node_of(graph, maker).layer == layer && is_repeatable[maker]) return true;
  return std::ranges::any_of(users_of(v), [&](NodeIndex user) {
    return node_of(graph, user).layer == layer && node_of(graph, user).phase == Phase::backward;
  });
}

void GraphUses::find_repeatable() {
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = node_of(graph, n);
    if (node.phase != Phase::forward || !is_cheap(graph, node)) continue;
    is_repeatable[n] =
        std::ranges::all_of(node.operands, [&](ValueIndex v) { return is_at_hand(v, node.layer); });
  }
}

Phase phase_of_transfer(const Graph& graph, ValueIndex value) {
  const NodeIndex producer = value_of(graph, value).producer;
  if (producer < 0) return Phase::update;
  const Node& maker = node_of(graph, producer);
  return maker.op->sums_micro_batches ? Phase::update : maker.phase;
}

bool is_of_update_alone(const GraphUses& uses, const State& state) {
  return state.next >= 0 && std::ranges::equal(uses.users_of(state.value),
                                               std::array{value_of(uses.graph, state.next).producer});
}

bool may_rest_on_host(const GraphUses& uses, const State& state) {
  const std::vector<NodeIndex>& users = uses.users_of(state.value);
  const auto layer = [&](NodeIndex user) { return node_of(uses.graph, user).layer; };
  return is_of_update_alone(uses, state) ||
         (state.is_parameter &&
          std::ranges::all_of(users, [&](NodeIndex user) { return layer(user) == layer(users.front()); }));
}

namespace {

std::vector<ValueIndex> sorted_states(const GraphUses& uses, bool (*is_one)(const GraphUses&, const State&)) {
  std::vector<ValueIndex> states;
  for (const State& state : uses.graph.states)
    if (is_one(uses, state)) states.push_back(state.value);
  std::ranges::sort(states);
  return states;
}

}  // namespace

std::vector<ValueIndex> states_of_updates_alone(const GraphUses& uses) {
  return sorted_states(uses, is_of_update_alone);
}

std::vector<ValueIndex> states_that_may_rest_on_host(const GraphUses& uses) {
  return sorted_states(uses, may_rest_on_host);
}

bool holds_gradient_back(const Node& node) { return node.op->holds_gradient_back; }

bool updates_in_place(const Node& node) {
  return node.phase == Phase::update && node.op->overwritten(0) >= 0;
}

}  // namespace alpa
