#include "libalpa/plan/owned_updates.h"

#include <algorithm>
#include <map>
#include <optional>

namespace alpa {
namespace {

/// The updates of a mesh that can be shared out, found node by node from the sums of gradients on.
class OwnableUpdates {
 public:
  OwnableUpdates(const Placement& placement, MeshIndex mesh, const Conversions& conversions)
      : placement_(placement),
        conversions_(conversions),
        graph_(placement.graph()),
        uses_(placement.uses()),
        plan_(placement.plan()),
        mesh_(mesh) {
    for (const ValueIndex sum : sums_of_gradients(graph_)) sums_.insert(sum);
    for (const ReducedGradient& each : converted_gradients(placement, mesh, conversions)) {
      turn_.insert({each.sum, std::ssize(turn_)});
      if (is_added_up_over_one_axis(each.sum, each.steps)) take(each);
    }
  }

  std::vector<OwnableUpdate> run() {
    for (const NodeIndex n : graph_.nodes.indices()) {
      const Node& node = node_of(graph_, n);
      if (node.phase != Phase::update || node.op->reduces_globally) continue;
      take_sum_of_terms(n);
      std::optional<OwnableUpdate> made = made_by(n);
      if (!made) continue;
      if (std::ranges::all_of(node.results, [&](ValueIndex v) { return uses_.state_after_value(v) >= 0; }))
        found_.push_back(std::move(*made));
      else if (is_on_the_way(n))
        taken_[node.results[0]] = std::move(*made);
    }
    std::ranges::sort(found_, {}, [&](const OwnableUpdate& each) { return turn_.at(each.sums.back()); });
    return std::move(found_);
  }

 private:
  /// What devices along the axis of its steps add up.
  void take(const ReducedGradient& each) {
    const ConversionStep& step = each.steps.front();
    if (step.maximum || step.wire_type || each.tile.shape.empty() || uses_.users_of(each.sum).size() != 1)
      return;
    const std::int64_t rows = each.tile.shape[0];
    taken_[each.sum] = {NodeIndex(), {each.sum}, step.axis, rows, byte_count(each.tile) / rows};
  }

  /// By an all-reduce, or the reduce-scatter and all-gather that are one.
  bool is_added_up_over_one_axis(ValueIndex sum, const Conversion& steps) const {
    const auto is_over_same = [&](const ConversionStep& step) { return step.axis == steps.front().axis; };
    return !steps.empty() && std::ranges::all_of(steps, is_over_same) &&
           placement_.layout_in_update(sum, mesh_) == without_terms(placement_.layout_at_rest(sum, mesh_));
  }

  /// Each device adds its terms of several sums of gradients, and then they add up what that makes.
  void take_sum_of_terms(NodeIndex n) {
    const Node& node = node_of(graph_, n);
    const ValueIndex sum = node.results[0];
    const auto is_gradient = [&](ValueIndex operand) { return sums_.contains(operand); };
    if (placement_.mesh_of_node(n) != mesh_ || node.results.size() != 1 ||
        !std::ranges::all_of(node.operands, is_gradient))
      return;
    sums_.insert(sum);
    const Value& value = value_of(graph_, sum);
    const ShardingSpec rests = placement_.layout_at_rest(sum, mesh_);
    if (is_sent(sum) || placement_.node_layout(n).results[0] != rests) return;
    const Conversion* const steps =
        conversions_.between(value.type, rests, placement_.layout_in_update(sum, mesh_), value.wire);
    if (!steps || !is_added_up_over_one_axis(sum, *steps)) return;
    turn_.insert({sum, std::ssize(turn_)});
    take({sum, *steps, tile_type(value.type, rests, plan_.meshes[mesh_].shape)});
  }

  /// What of the sums that a node takes it can make by rows: nullopt where it takes none, or not so.
  std::optional<OwnableUpdate> made_by(NodeIndex n) {
    const Node& node = node_of(graph_, n);
    OwnableUpdate made;
    for (const ValueIndex operand : node.operands) {
      const auto taken = taken_.find(operand);
      if (taken == taken_.end()) continue;
      if (!made.sums.empty() && taken->second.axis != made.axis) return std::nullopt;
      std::vector<ValueIndex> sums = std::move(made.sums);
      sums.insert(sums.end(), taken->second.sums.begin(), taken->second.sums.end());
      made = taken->second;
      made.sums = std::move(sums);
    }
    if (made.sums.empty() || placement_.mesh_of_node(n) != mesh_ ||
        plan_.node_strategy[n][made.axis] != kIdleAxis || !is_by_rows(node) || !leaves_states_to_owners(n))
      return std::nullopt;
    std::ranges::sort(made.sums, {}, [&](ValueIndex sum) { return turn_.at(sum); });
    made.update = n;
    return made;
  }

  /// Whether each row of what it makes is made of the same row of what it takes of sums and states, and of
  /// what has no rows.
  bool is_by_rows(const Node& node) const {
    const std::vector<TensorType> types = operand_types(graph_, node);
    const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
    const auto is_taken = [&](ValueIndex operand) { return taken_.contains(operand); };
    const auto of_sum =
        static_cast<std::size_t>(std::ranges::find_if(node.operands, is_taken) - node.operands.begin());
    if (rule.operands[of_sum].empty()) return false;
    const DimensionFactors rows = rule.operands[of_sum][0];
    if (rows.size() != 1 || rule.factors[static_cast<std::size_t>(rows[0])].whole) return false;
    const auto has_rows = [&](const auto& dimensions) {
      return !dimensions.empty() && dimensions[0] == rows;
    };
    const auto has_none = [&](const auto& dimensions) {
      return std::ranges::none_of(
          dimensions, [&](const DimensionFactors& of) { return std::ranges::count(of, rows[0]) > 0; });
    };
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const bool has_owners = is_taken(node.operands[i]) || uses_.state_at[node.operands[i]] >= 0;
      if (!(has_owners && has_rows(rule.operands[i])) &&
          (is_taken(node.operands[i]) || !has_none(rule.operands[i])))
        return false;
    }
    return std::ranges::all_of(rule.results, has_rows);
  }

  /// Whether what it makes of states lies in place where every device has it once its owner has handed it
  /// out.
  bool leaves_states_to_owners(NodeIndex n) const {
    const Node& node = node_of(graph_, n);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const StateIndex state = uses_.state_after_value(node.results[r]);
      if (state < 0) continue;
      const ValueIndex value = graph_.states[state].value;
      if (node.op->overwritten(r) < 0 || plan_.rests_on_host(value) || is_sent(value) ||
          placement_.layout_at_rest(value, mesh_) != placement_.node_layout(n).results[r])
        return false;
    }
    return true;
  }

  /// Whether one node of the update alone takes what it makes, as it is made.
  bool is_on_the_way(NodeIndex n) const {
    const Node& node = node_of(graph_, n);
    const ValueIndex value = node.results[0];
    const ShardingSpec& made = placement_.node_layout(n).results[0];
    return node.results.size() == 1 && node.op->overwritten(0) < 0 && uses_.users_of(value).size() == 1 &&
           !is_sent(value) && placement_.layout_at_rest(value, mesh_) == made &&
           placement_.layout_in_update(value, mesh_) == made;
  }

  bool is_sent(ValueIndex value) const {
    return std::ranges::count(plan_.transfers, value, &PlannedTransfer::value) > 0;
  }

  const Placement& placement_;
  const Conversions& conversions_;
  const Graph& graph_;
  const GraphUses& uses_;
  const Plan& plan_;
  MeshIndex mesh_;
  std::set<ValueIndex> sums_;                  ///< of gradients, and sums of such
  std::map<ValueIndex, std::ptrdiff_t> turn_;  ///< of sums that devices add up
  std::map<ValueIndex, OwnableUpdate> taken_;  ///< of sums, and of what is made of them on the way
  std::vector<OwnableUpdate> found_;
};

}  // namespace

std::vector<OwnableUpdate> ownable_updates(const Placement& placement, MeshIndex mesh,
                                           const Conversions& conversions) {
  if (placement.plan().updates != UpdateOrder::after_norm) return {};
  return OwnableUpdates(placement, mesh, conversions).run();
}

std::set<ValueIndex> states_at_owners(const Plan& plan, const GraphUses& uses) {
  std::set<ValueIndex> states;
  for (const GradientSync& sync : plan.sync) {
    if (sync.owners.empty()) continue;
    NodeIndex update = uses.users_of(sync.sum).front();
    const auto result = [&] { return node_of(uses.graph, update).results[0]; };
    while (uses.state_after_value(result()) < 0) update = uses.users_of(result()).front();
    for (const ValueIndex next : node_of(uses.graph, update).results)
      if (const State& state = uses.graph.states[uses.state_after_value(next)];
          is_of_update_alone(uses, state))
        states.insert(state.value);
  }
  return states;
}

}  // namespace alpa
