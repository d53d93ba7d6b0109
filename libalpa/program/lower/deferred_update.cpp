// Updates in the forward of the next step (UpdateOrder::next_forward).
#include <algorithm>

#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {

/// Nodes that have a state or a value of the update in common are of one update, and stay in their order.
void MeshLowering::find_updates() {
  Indexed<NodeIndex, NodeIndex> first;
  for (const NodeIndex n : graph_.nodes.indices()) first.push_back(n);
  std::map<ValueIndex, NodeIndex> user;  // of a state by its value at the start
  const auto first_of = [&](NodeIndex n) {
    while (first[n] != n) n = first[n];
    return n;
  };
  const auto join = [&](NodeIndex n, ValueIndex value) {
    const auto [other, is_first] = user.try_emplace(value, n);
    if (is_first) return;
    const NodeIndex a = first_of(n), b = first_of(other->second);
    first[std::max(a, b)] = std::min(a, b);
  };
  const auto is_update = [&](NodeIndex n) {
    const Node& node = node_of(graph_, n);
    return node.phase == Phase::update && !node.op->reduces_globally && !holds_gradient_back(node) &&
           here(n) && (!updates_wait_ || n > uses_.norm);
  };
  for (const NodeIndex n : graph_.nodes.indices()) {
    if (!is_update(n)) continue;
    for (const ValueIndex operand : node_of(graph_, n).operands) {
      const NodeIndex maker = value_of(graph_, operand).producer;
      if (value_of(graph_, operand).kind == ValueKind::state || (maker >= 0 && is_update(maker)))
        join(n, operand);
    }
    for (const ValueIndex result : node_of(graph_, n).results) {
      const StateIndex state = uses_.state_after_value(result);
      join(n, state < 0 ? result : graph_.states[state].value);
      if (state >= 0) update_of_[state] = n;
    }
  }
  for (auto& [state, n] : update_of_) n = first_of(n);
  for (const NodeIndex n : graph_.nodes.indices())
    if (is_update(n)) updates_[first_of(n)].push_back(n);
}

void MeshLowering::update(NodeIndex first) {
  const auto nodes = updates_.extract(first);
  if (nodes.empty()) return;
  for (const NodeIndex n : nodes.mapped()) emit_node(n);
}

/// What the forward is about to sum anew comes first, the losses; then what waits for the norm. (Running
/// averages are of sums that the backward makes.)
void MeshLowering::begin_deferred_update(const std::vector<NodeIndex>& forward) {
  find_updates();
  values_.turn_to_step_before();
  make_scalars();
  for (const NodeIndex n : graph_.nodes.indices())
    for (const ValueIndex result : node_of(graph_, n).results)
      if (here(n) && (node_of(graph_, n).op->sums_micro_batches || uses_.summed_over_step[result]))
        values_.resting_buffer(result, value_of(graph_, result).type.dtype);
  for (const ReducedGradient& each : converted_gradients(placement_, mesh_, values_.conversions())) {
    const BufferIndex buffer =
        is_sum_alone(each.steps) ? values_.fetch_resting(each.sum) : split_sum(each.sum);
    values_.provide(each.sum, placement_.layout_in_update(each.sum, mesh_), buffer);
  }
  add_up_losses();
  if (updates_wait_) {
    for (const NodeIndex n : graph_.nodes.indices())
      if (n < uses_.norm && node_of(graph_, n).phase == Phase::update && here(n)) emit_node(n);
    emit_gradient_norm(node_of(graph_, uses_.norm));
    emit_global_sum();
    for (const NodeIndex n : forward) update_states_of(n, true);
  }
  values_.turn_to_this_step();
}

/// The states that a node of the forward uses; `all`, or those alone that are gathered once they are updated.
void MeshLowering::update_states_of(NodeIndex user, bool all) {
  const auto is_gathered = [&](ValueIndex result, const ShardingSpec& made) {
    return uses_.state_after_value(result) >= 0 && made != values_.resting_layout(result);
  };
  for (const ValueIndex operand : node_of(graph_, user).operands) {
    const StateIndex state = uses_.state_at[operand];
    const auto of = state < 0 ? update_of_.end() : update_of_.find(state);
    const auto nodes = of == update_of_.end() ? updates_.end() : updates_.find(of->second);
    if (nodes == updates_.end()) continue;
    const bool gathers = std::ranges::any_of(nodes->second, [&](NodeIndex n) {
      const std::vector<ValueIndex>& results = node_of(graph_, n).results;
      for (std::size_t r = 0; r < results.size(); ++r)
        if (is_gathered(results[r], placement_.node_layout(n).results[r])) return true;
      return false;
    });
    if (all || gathers) update(nodes->first);
  }
}

/// Before a node of the forward its own states; before a layer those of the next that have to be gathered, so
/// that this layer goes on meanwhile.
void MeshLowering::update_before(std::size_t place, const std::vector<NodeIndex>& forward) {
  values_.turn_to_step_before();
  const auto layer = [&](std::size_t of) { return node_of(graph_, forward[of]).layer; };
  update_states_of(forward[place], true);
  if (place == 0 || layer(place) != layer(place - 1)) {
    std::size_t next = place;
    while (next < forward.size() && layer(next) == layer(place)) ++next;
    for (std::size_t of = next; of < forward.size() && layer(of) == layer(next); ++of)
      update_states_of(forward[of], false);
  }
  values_.turn_to_this_step();
}

/// What is left, and a rank's part of what all add up.
void MeshLowering::end_deferred_update() {
  values_.turn_to_step_before();
  while (!updates_.empty()) update(updates_.begin()->first);
  if (!updates_wait_) emit_gradient_norm(node_of(graph_, uses_.norm));
  for (const NodeIndex n : graph_.nodes.indices())
    if (holds_gradient_back(node_of(graph_, n)) && here(n)) emit_node(n);
  values_.turn_to_this_step();
}

/// Where no update waits for the norm all ranks meet at the end of the step, where those who come early would
/// wait for the others' next forward anyway. The sums of its gradients go on after that.
void MeshLowering::end_step() {
  values_.turn_to_step_before();
  if (!updates_wait_) emit_global_sum();
  values_.turn_to_this_step();
  sum_gradients();
}

}  // namespace alpa
