#include "libalpa/planner/axis_roles.h"

#include <algorithm>
#include <numeric>

namespace alpa {
namespace {

class RoleFilter {
 public:
  RoleFilter(const PlanningGraph& planning, int node, const StageRequest& request)
      : node_(node_of(*planning.graph, node)),
        roles_(planning.roles[static_cast<std::size_t>(node)]),
        request_(request) {
    const std::vector<TensorType> types = operand_types(*planning.graph, node_);
    rule_ = rule_of(*node_.op, {types, node_.attributes});
  }

  bool allows(const Strategy& strategy) const {
    for (std::size_t axis = 0; axis < request_.roles.size(); ++axis)
      if (!allows(request_.roles[axis], strategy[axis])) return false;
    return true;
  }

  /// ZeRO spreads over the data axes all that divides; the rest stays whole.
  bool is_spread() const {
    if (request_.spread == StateSpread::free) return false;
    const bool rests_on_state = node_.phase == Phase::update && node_.op->overwrites[0] >= 0;
    return (node_.op->sums_micro_batches && request_.spread >= StateSpread::gradients) ||
           (rests_on_state && request_.spread >= StateSpread::optimizer);
  }

  bool splits_data(const Strategy& strategy) const {
    for (std::size_t axis = 0; axis < request_.roles.size(); ++axis)
      if (request_.roles[axis] == AxisRole::data && strategy[axis] < 0) return false;
    return true;
  }

 private:
  bool has(FactorRole role) const {
    for (std::size_t f = 0; f < roles_.size(); ++f)
      if (roles_[f] == role && !rule_.factors[f].whole && rule_.factors[f].size > 1) return true;
    return false;
  }

  bool allows(AxisRole role, int choice) const {
    const FactorRole split = choice >= 0 ? roles_[static_cast<std::size_t>(choice)] : FactorRole::other;
    if (role == AxisRole::tensor) return split == FactorRole::other;
    if (role == AxisRole::free) return true;
    const FactorRole wanted = role == AxisRole::data ? FactorRole::sample : FactorRole::sequence;
    if (has(wanted)) return split == wanted;
    if (node_.op->sums_micro_batches)
      return request_.spread == StateSpread::free || request_.spread >= StateSpread::gradients ||
             choice == kPassPartialAxis;
    if (node_.phase == Phase::update) return request_.spread != StateSpread::none || choice < 0;
    return choice < 0;
  }

  const Node& node_;
  const std::vector<FactorRole>& roles_;
  const StageRequest& request_;
  ShardingRule rule_;
};

}  // namespace

std::vector<int> allowed_options(const PlanningGraph& planning, int node,
                                 const std::vector<NodeOption>& options, const StageRequest& request) {
  std::vector<int> allowed(options.size());
  std::iota(allowed.begin(), allowed.end(), 0);
  if (request.roles.empty()) return allowed;
  const RoleFilter filter(planning, node, request);
  const auto strategy = [&](int o) -> const Strategy& {
    return options[static_cast<std::size_t>(o)].strategy;
  };
  std::erase_if(allowed, [&](int o) { return !filter.allows(strategy(o)); });
  const auto spreads = [&](int o) { return filter.splits_data(strategy(o)); };
  if (filter.is_spread() && std::any_of(allowed.begin(), allowed.end(), spreads))
    std::erase_if(allowed, [&](int o) { return !spreads(o); });
  return allowed;
}

bool may_rest(const ShardingSpec& spec, const StageRequest& request) {
  if (request.spread == StateSpread::free) return true;
  for (std::size_t axis = 0; axis < request.roles.size(); ++axis) {
    const AxisRole role = request.roles[axis];
    if (role != AxisRole::data && role != AxisRole::sequence) continue;
    bool split = false;
    for (const auto& axes : spec.axes)
      split = split || std::find(axes.begin(), axes.end(), static_cast<int>(axis)) != axes.end();
    if (split != (request.spread == StateSpread::parameters && role == AxisRole::data)) return false;
  }
  return true;
}

}  // namespace alpa
