#include "libalpa/planner/stage/axis_roles.h"

#include <algorithm>
#include <numeric>

#include "libalpa/sharding/strategy.h"

namespace alpa {
namespace {

bool holds_samples(AxisRole role) {
  return role == AxisRole::data || role == AxisRole::expert || role == AxisRole::factors ||
         role == AxisRole::rows;
}

class RoleFilter {
 public:
  RoleFilter(const PlanningGraph& planning, NodeIndex node, const StageRequest& request)
      : planning_(planning), index_(node), node_(node_of(planning.graph(), node)), request_(request) {
    splits_sample_ = splits(node, FactorRole::sample);
    splits_sequence_ = splits(node, FactorRole::sequence);
    splits_expert_ = splits(node, FactorRole::expert);
    for (const Factor& factor : planning.rules[node].factors) goes_round_.push_back(factor.ring >= 0);
    has_ring_ = std::find(goes_round_.begin(), goes_round_.end(), true) != goes_round_.end();
  }

  bool allows(const Strategy& strategy) const {
    for (std::size_t axis = 0; axis < request_.roles.size(); ++axis)
      if (!allows(request_.roles[axis], strategy[axis])) return false;
    return true;
  }

  /// ZeRO spreads over the data axes all that divides, but for terms, which devices have apart; the rest
  /// stays whole.
  bool is_spread() const {
    if (request_.state_sharding == StateSharding::free) return false;
    return (node_.op->sums_micro_batches && request_.state_sharding >= StateSharding::gradients) ||
           (updates_in_place(node_) && request_.state_sharding >= StateSharding::optimizer &&
            !updates_terms());
  }

  bool splits_data(const Strategy& strategy) const {
    for (std::size_t axis = 0; axis < request_.roles.size(); ++axis)
      if (holds_samples(request_.roles[axis]) && strategy[axis] < 0) return false;
    return true;
  }

 private:
  const std::vector<FactorRole>& roles_of(NodeIndex node) const { return planning_.roles[node]; }

  /// Whether a node has a factor of that role that can be split.
  bool splits(NodeIndex index, FactorRole role) const {
    const std::vector<FactorRole>& roles = roles_of(index);
    const ShardingRule& rule = planning_.rules[index];
    for (std::size_t f = 0; f < roles.size(); ++f)
      if (roles[f] == role && can_split(rule, static_cast<int>(f))) return true;
    return false;
  }

  /// A gradient is a sum over samples or positions, partial along an axis that splits them, unless what makes
  /// it knows none (tokens that are routed in groups of whole sequences).
  bool sums_along(FactorRole role, int choice) const {
    const NodeIndex maker = value_of(planning_.graph(), node_.operands[0]).producer;
    return choice == kPassPartialAxis || (choice == kIdleAxis && !splits(maker, role));
  }

  bool updates_terms() const {
    const StateIndex state = planning_.uses.state_after_value(node_.results[0]);
    return state >= 0 && planning_.graph().states[state].holds_terms;
  }

  bool makes_gradients_of_weights_alone() const {
    const auto is_sum = [&](NodeIndex user) {
      return node_of(planning_.graph(), user).op->sums_micro_batches;
    };
    return node_.phase == Phase::backward && !node_.op->sums_micro_batches &&
           std::ranges::all_of(node_.results, [&](ValueIndex made) {
             const std::vector<NodeIndex>& users = planning_.uses.users_of(made);
             return !users.empty() && std::ranges::all_of(users, is_sum);
           });
  }

  /// On every device of an axis that splits samples, for all of these.
  bool may_be_repeated(AxisRole role) const {
    if (role == AxisRole::factors) return node_.op->sums_micro_batches || makes_gradients_of_weights_alone();
    if (role != AxisRole::rows) return false;
    const NodeIndex maker = value_of(planning_.graph(), node_.operands[0]).producer;
    return node_.op->adds_up_rows ||
           (node_.op->sums_micro_batches && maker >= 0 && node_of(planning_.graph(), maker).op->adds_up_rows);
  }

  bool allows(AxisRole role, int choice) const {
    if (choice == kIdleAxis && may_be_repeated(role)) return true;
    const FactorRole split = choice >= 0 ? roles_of(index_)[choice] : FactorRole::other;
    if (role == AxisRole::tensor) return split == FactorRole::other || split == FactorRole::expert;
    if (role == AxisRole::free) return true;
    if (role == AxisRole::expert && splits_expert_) return split == FactorRole::expert;
    const FactorRole wanted = holds_samples(role) ? FactorRole::sample : FactorRole::sequence;
    if (wanted == FactorRole::sample ? splits_sample_ : splits_sequence_)
      return split == wanted && goes_round_[choice] == (role == AxisRole::ring && has_ring_);
    if (node_.op->sums_micro_batches)
      return request_.state_sharding == StateSharding::free ||
             request_.state_sharding >= StateSharding::gradients || sums_along(wanted, choice);
    if (node_.phase == Phase::update) return request_.state_sharding != StateSharding::none || choice < 0;
    return choice < 0;
  }

  const PlanningGraph& planning_;
  NodeIndex index_;
  const Node& node_;
  const StageRequest& request_;
  bool splits_sample_ = false, splits_sequence_ = false, splits_expert_ = false;
  std::vector<bool> goes_round_;  ///< [factor]
  bool has_ring_ = false;
};

}  // namespace

std::vector<int> allowed_options(const PlanningGraph& planning, NodeIndex node,
                                 const std::vector<NodeOption>& options, const StageRequest& request) {
  std::vector<int> allowed(options.size());
  std::iota(allowed.begin(), allowed.end(), 0);
  if (request.roles.empty()) return allowed;
  const RoleFilter filter(planning, node, request);
  const auto strategy = [&](int o) -> const Strategy& { return options[o].strategy; };
  std::erase_if(allowed, [&](int o) { return !filter.allows(strategy(o)); });
  const auto spreads = [&](int o) { return filter.splits_data(strategy(o)); };
  if (filter.is_spread() && std::any_of(allowed.begin(), allowed.end(), spreads))
    std::erase_if(allowed, [&](int o) { return !spreads(o); });
  return allowed;
}

std::int64_t tensor_parallel_devices(const Node& node, const std::vector<FactorRole>& of_factors,
                                     const Strategy& strategy, const MeshShape& mesh) {
  std::int64_t devices = 1;
  if (node.phase == Phase::update || node.op->sums_micro_batches) return devices;
  for (std::size_t axis = 0; axis < strategy.size(); ++axis)
    if (strategy[axis] >= 0 && of_factors[strategy[axis]] == FactorRole::other) devices *= mesh[axis];
  return devices;
}

bool may_rest(const ShardingSpec& spec, const StageRequest& request) {
  if (request.state_sharding == StateSharding::free) return true;
  for (std::size_t axis = 0; axis < request.roles.size(); ++axis) {
    const AxisRole role = request.roles[axis];
    if (role == AxisRole::free || role == AxisRole::tensor || role == AxisRole::expert) continue;
    const bool is_split = splits_along(spec, static_cast<int>(axis));
    if (is_split != (request.state_sharding == StateSharding::parameters && holds_samples(role)))
      return false;
  }
  return true;
}

}  // namespace alpa
