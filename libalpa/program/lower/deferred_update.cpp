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
    return node.phase == Phase::update && !node.op->reduces_globally && here(n);
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

/// What the forward is about to sum anew comes first: losses, and what it counts for running averages.
void MeshLowering::begin_deferred_update() {
  find_updates();
  values_.turn_to_step_before();
  make_scalars();
  for (const NodeIndex n : graph_.nodes.indices())
    for (const ValueIndex result : node_of(graph_, n).results)
      if (here(n) && (node_of(graph_, n).op->sums_micro_batches || uses_.summed_over_step[result]))
        values_.resting_buffer(result, value_of(graph_, result).type.dtype);
  for (const ReducedGradient& each : converted_gradients(placement_, mesh_, values_.conversions())) {
    const ShardingSpec layout = placement_.layout_in_update(each.sum, mesh_);
    BufferIndex buffer = values_.fetch_resting(each.sum);
    if (!is_sum_alone(each.steps)) {  // it is made while the next step has begun
      const Value& sum = value_of(graph_, each.sum);
      buffer = split_sums_[each.sum] = values_.new_buffer(
          sum.name, each.sum, layout, tile_type(sum.type, layout, shape()), Residence::step);
    }
    values_.provide(each.sum, layout, buffer);
  }
  add_up_losses();
  const auto is_made_in_forward = [&](ValueIndex value) {
    const NodeIndex maker = value_of(graph_, value).producer;
    return maker >= 0 && node_of(graph_, maker).phase == Phase::forward;
  };
  std::vector<NodeIndex> at_once;
  for (const auto& [first, nodes] : updates_)
    if (std::ranges::any_of(nodes, [&](NodeIndex n) {
          return std::ranges::any_of(node_of(graph_, n).operands, is_made_in_forward);
        }))
      at_once.push_back(first);
  for (const NodeIndex first : at_once) update(first);
  values_.turn_to_this_step();
}

/// The states that a node of the forward uses.
void MeshLowering::update_before(NodeIndex user) {
  values_.turn_to_step_before();
  for (const ValueIndex operand : node_of(graph_, user).operands)
    if (const StateIndex state = uses_.state_at[operand]; state >= 0)
      if (const auto of = update_of_.find(state); of != update_of_.end()) update(of->second);
  values_.turn_to_this_step();
}

/// What is left, and a rank's part of what all add up.
void MeshLowering::end_deferred_update() {
  values_.turn_to_step_before();
  while (!updates_.empty()) update(updates_.begin()->first);
  emit_gradient_norm(node_of(graph_, uses_.norm));
  values_.turn_to_this_step();
}

/// All ranks meet at the end of the step, where those who come early would wait for the others' next forward
/// anyway. The sums of its gradients go on after that.
void MeshLowering::end_step() {
  values_.turn_to_step_before();
  emit_global_sum();
  values_.turn_to_this_step();
  sum_gradients();
}

}  // namespace alpa
