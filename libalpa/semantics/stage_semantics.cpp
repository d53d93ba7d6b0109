#include "libalpa/semantics/stage_semantics.h"

#include <algorithm>

namespace alpa {
namespace {

constexpr std::int64_t kSmall = 16;  ///< times less than what it is made of, or with, or more

}  // namespace

bool StageSemantics::has(NodeIndex n) const {
  const Node& node = node_of(graph(), n);
  return node.layer >= range_.first_layer && node.layer < range_.end_layer && !node.op->reduces_globally;
}

bool StageSemantics::makes(ValueIndex value) const {
  const NodeIndex producer = value_of(graph(), value).producer;
  return producer >= 0 && has(producer);
}

bool StageSemantics::leaves(ValueIndex value) const {
  return std::ranges::any_of(uses_.users_of(value), [&](NodeIndex n) { return !has(n); });
}

bool StageSemantics::may_run_again(NodeIndex n) const {
  const Node& node = node_of(graph(), n);
  if (node.phase != Phase::forward || !range_.spares(node.layer)) return false;
  switch (range_.form) {
    case RecomputeForm::full:
      return true;
    case RecomputeForm::selective:
      return uses_.is_repeatable[n];
    case RecomputeForm::offload:
      return false;
  }
  return false;
}

bool StageSemantics::is_saved(ValueIndex v) const {
  const Value& value = value_of(graph(), v);
  if (value.kind == ValueKind::state) return false;
  const Node* maker = value.producer < 0 ? nullptr : &node_of(graph(), value.producer);
  if (maker && maker->phase != Phase::forward) return false;
  bool in_forward = maker, in_backward = false;
  for (const NodeIndex n : uses_.users_of(v)) {
    if (!has(n)) continue;
    const Node& user = node_of(graph(), n);
    if (user.phase == Phase::forward) in_forward = true;
    const bool is_made_again = maker && user.layer == maker->layer && may_run_again(value.producer);
    if (!is_made_again && (user.phase == Phase::backward || may_run_again(n))) in_backward = true;
  }
  return in_forward && in_backward;
}

std::vector<ValueIndex> StageSemantics::saved_values() const {
  std::vector<ValueIndex> saved;
  for (const ValueIndex v : graph().values.indices())
    if (is_saved(v)) saved.push_back(v);
  return saved;
}

bool StageSemantics::is_offloaded(ValueIndex v) const {
  if (range_.form != RecomputeForm::offload || !makes(v) || !is_saved(v) || leaves(v)) return false;
  const Node& maker = node_of(graph(), value_of(graph(), v).producer);
  const auto result = std::ranges::find(maker.results, v) - maker.results.begin();
  if (!range_.spares(maker.layer) || maker.op->overwritten(result) >= 0) return false;
  std::int64_t most = 0;
  for (const auto* around : {&maker.operands, &maker.results})
    for (const ValueIndex other : *around)
      if (const Value& value = value_of(graph(), other); value.kind == ValueKind::computed)
        most = std::max(most, byte_count(value.type));
  return kSmall * byte_count(value_of(graph(), v).type) > most;
}

Indexed<NodeIndex, bool> StageSemantics::recomputed(const Indexed<ValueIndex, bool>& kept) const {
  Indexed<NodeIndex, bool> again(graph().nodes.size());
  if (range_.recomputed_layers == 0) return again;
  Indexed<ValueIndex, bool> wanted(graph().values.size());
  const auto want = [&](const Node& node) {
    for (const ValueIndex operand : node.operands) wanted[operand] = true;
  };
  for (const NodeIndex n : again.indices())
    if (has(n) && node_of(graph(), n).phase == Phase::backward) want(node_of(graph(), n));
  for (const NodeIndex n : again.reversed_indices()) {
    const Node& node = node_of(graph(), n);
    if (!has(n) || node.phase != Phase::forward) continue;
    const bool needed =
        std::ranges::any_of(node.results, [&](ValueIndex result) { return wanted[result] && !kept[result]; });
    if (!needed) continue;
    again[n] = true;
    want(node);
  }
  return again;
}

std::vector<NodeIndex> StageSemantics::order(Phase segment, const Indexed<ValueIndex, bool>& kept) const {
  std::vector<NodeIndex> order;
  const auto of_phase = [&](Phase phase) {
    std::vector<NodeIndex> nodes;
    for (const NodeIndex n : graph().nodes.indices())
      if (has(n) && node_of(graph(), n).phase == phase) nodes.push_back(n);
    return nodes;
  };
  if (segment != Phase::backward) return of_phase(segment);
  const Indexed<NodeIndex, bool> again = recomputed(kept);
  std::vector<std::vector<NodeIndex>> of_layer(
      static_cast<std::size_t>(range_.end_layer - range_.first_layer));
  const auto sort_in = [&](NodeIndex n) {
    of_layer[node_of(graph(), n).layer - range_.first_layer].push_back(n);
  };
  for (const NodeIndex n : of_phase(Phase::forward))
    if (again[n]) sort_in(n);
  for (const NodeIndex n : of_phase(Phase::backward)) sort_in(n);
  Indexed<NodeIndex, bool> done(graph().nodes.size());
  for (auto layer = of_layer.rbegin(); layer != of_layer.rend(); ++layer)
    for (const NodeIndex n : *layer) {
      if (done[n]) continue;
      order.push_back(n);
      if (node_of(graph(), n).phase == Phase::forward) continue;
      for (const ValueIndex result : node_of(graph(), n).results)
        for (const NodeIndex user : uses_.users_of(result)) {
          if (!node_of(graph(), user).op->sums_micro_batches || !has(user)) continue;
          if (!done[user]) order.push_back(user);
          done[user] = true;
        }
    }
  return order;
}

NodeIndex StageSemantics::sum_in_kernel(NodeIndex n) const {
  const Node& node = node_of(graph(), n);
  if (!node.op->accumulates || node.phase != Phase::backward || node.op->sums_micro_batches) return {};
  const std::vector<NodeIndex>& users = uses_.users_of(node.results[0]);
  const bool alone = users.size() == 1 && has(users[0]) && node_of(graph(), users[0]).op->sums_micro_batches;
  return alone ? users[0] : NodeIndex();
}

NodeIndex StageSemantics::kernel_of_sum(NodeIndex sum) const {
  const Node& node = node_of(graph(), sum);
  if (!node.op->sums_micro_batches) return {};
  const NodeIndex producer = value_of(graph(), node.operands[0]).producer;
  return producer >= 0 && has(producer) && sum_in_kernel(producer) == sum ? producer : NodeIndex();
}

}  // namespace alpa
