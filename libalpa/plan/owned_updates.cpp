#include "libalpa/plan/owned_updates.h"

#include <algorithm>

namespace alpa {
namespace {

/// Whether each row of what it makes is made of the same row of its operands, and of what has no rows.
bool is_by_rows(const OpDef& op, const OpCall& call, std::size_t rows_of) {
  const ShardingRule rule = rule_of(op, call);
  if (rule.operands[rows_of].empty()) return false;
  const DimensionFactors rows = rule.operands[rows_of][0];
  if (rows.size() != 1 || rule.factors[static_cast<std::size_t>(rows[0])].whole) return false;
  const auto has_rows = [&](const auto& dimensions) { return !dimensions.empty() && dimensions[0] == rows; };
  const auto has_none = [&](const auto& dimensions) {
    return std::ranges::none_of(
        dimensions, [&](const DimensionFactors& of) { return std::ranges::count(of, rows[0]) > 0; });
  };
  return std::ranges::all_of(rule.results, has_rows) &&
         std::ranges::all_of(rule.operands, [&](const auto& of) { return has_rows(of) || has_none(of); });
}

}  // namespace

std::optional<OwnableUpdate> ownable_update(const Placement& placement, MeshIndex mesh,
                                            const ReducedGradient& reduced) {
  const Graph& graph = placement.graph();
  const GraphUses& uses = placement.uses();
  const Plan& plan = placement.plan();
  if (plan.updates != UpdateOrder::after_norm || reduced.steps.size() != 1 || reduced.tile.shape.empty())
    return std::nullopt;
  const ConversionStep& step = reduced.steps.front();
  const std::vector<NodeIndex>& users = uses.users_of(reduced.sum);
  if (step.kind != ConversionKind::all_reduce || step.maximum || step.wire_type || users.size() != 1)
    return std::nullopt;
  const NodeIndex n = users.front();
  const Node& node = node_of(graph, n);
  if (placement.mesh_of_node(n) != mesh || plan.node_strategy[n][step.axis] != kIdleAxis) return std::nullopt;
  const auto at = std::ranges::find(node.operands, reduced.sum) - node.operands.begin();
  const std::vector<TensorType> types = operand_types(graph, node);
  if (!is_by_rows(*node.op, {types, node.attributes}, static_cast<std::size_t>(at))) return std::nullopt;
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    const StateIndex state = uses.state_after_value(node.results[r]);
    if (state < 0 || node.op->overwrites[r] < 0) return std::nullopt;
    const ValueIndex value = graph.states[state].value;
    if (plan.rests_on_host(value) || std::ranges::count(plan.transfers, value, &PlannedTransfer::value) > 0 ||
        placement.layout_at_rest(value, mesh) != placement.node_layout(n).results[r])
      return std::nullopt;
  }
  const std::int64_t rows = reduced.tile.shape[0];
  return OwnableUpdate{n, step.axis, rows, byte_count(reduced.tile) / rows};
}

std::set<ValueIndex> states_at_owners(const Plan& plan, const GraphUses& uses) {
  std::set<ValueIndex> states;
  for (const GradientSync& sync : plan.sync) {
    if (sync.owners.empty()) continue;
    for (const NodeIndex update : uses.users_of(sync.sum))
      for (const ValueIndex result : node_of(uses.graph, update).results) {
        const StateIndex state = uses.state_after_value(result);
        if (state >= 0 && is_of_update_alone(uses, uses.graph.states[state]))
          states.insert(uses.graph.states[state].value);
      }
  }
  return states;
}

}  // namespace alpa
