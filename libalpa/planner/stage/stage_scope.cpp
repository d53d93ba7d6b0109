#include "libalpa/planner/stage/stage_scope.h"

#include <algorithm>
#include <numeric>

namespace alpa {

int place_of(const std::vector<ValueIndex>& list, ValueIndex value) {
  return static_cast<int>(std::find(list.begin(), list.end(), value) - list.begin());
}

StageScope::StageScope(const PlanningGraph& planning, const StageRequest& request)
    : semantics_(planning.uses,
                 {request.first_layer, request.end_layer, request.recomputed_layers, request.recompute_form}),
      planning_(planning),
      request_(request),
      canonical_layer_(planning.classes.of_layer.size(), -1),
      copies_(planning.graph().nodes.size(), 0) {
  kept_.resize(graph().values.size());
  for (const ValueIndex v : semantics_.saved_values()) kept_[v] = true;
  runs_again_ = semantics_.recomputed(kept_);
  // class, which of its nodes run again or make what is offloaded
  std::map<std::pair<int, std::vector<bool>>, int> first_of_class;
  for (int layer = request.first_layer; layer < request.end_layer; ++layer) {
    std::vector<bool> again;
    for (const NodeIndex n : planning.classes.layer_nodes[layer]) {
      again.push_back(runs_again(n) || std::ranges::any_of(node(n).results, [&](ValueIndex result) {
                        return is_offloaded(result);
                      }));
      if (has(n)) nodes_.push_back(n);
    }
    const int of_class = planning.classes.of_layer[layer];
    canonical_layer_[layer] =
        first_of_class.emplace(std::pair(of_class, std::move(again)), layer).first->second;
  }
  std::sort(nodes_.begin(), nodes_.end());
  for (const NodeIndex n : nodes_) {
    const NodeIndex canonical = canonical_node(n);
    if (copies_[canonical]++ == 0) canonical_nodes_.push_back(canonical);
    // States of equal layers are the operands of equal nodes.
    for (std::size_t i = 0; i < node(n).operands.size(); ++i)
      if (value(node(n).operands[i]).kind == ValueKind::state)
        canonical_state_.emplace(node(n).operands[i], node(canonical).operands[i]);
    values_.insert(values_.end(), node(n).operands.begin(), node(n).operands.end());
    values_.insert(values_.end(), node(n).results.begin(), node(n).results.end());
  }
  std::sort(values_.begin(), values_.end());
  values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  std::sort(canonical_nodes_.begin(), canonical_nodes_.end(), [&](NodeIndex a, NodeIndex b) {
    return std::pair(node(a).phase, a) < std::pair(node(b).phase, b);
  });
  for (const Phase segment : {Phase::forward, Phase::backward, Phase::update})
    uses_.emplace(segment, Uses(*this, segment));
}

NodeIndex StageScope::canonical_node(NodeIndex n) const {
  const auto& [of_layer, layer_nodes, place] = planning_.classes;
  const int layer = canonical_layer_[node(n).layer];
  return layer_nodes[layer][place[n]];
}

ValueIndex StageScope::canonical_value(ValueIndex v) const {
  if (makes(v)) {
    const NodeIndex producer = value(v).producer;
    return node(canonical_node(producer)).results[place_of(node(producer).results, v)];
  }
  const auto at = canonical_state_.find(v);
  return at == canonical_state_.end() ? v : at->second;
}

int StageScope::home_layer(ValueIndex v) const {
  if (makes(v)) return node(value(v).producer).layer;
  int first = request_.end_layer;
  for (const NodeIndex user : users(v)) first = std::min(first, node(user).layer);
  return first;
}

std::vector<NodeIndex> StageScope::users(ValueIndex v) const {
  std::vector<NodeIndex> users;
  for (const NodeIndex n : planning_.uses.users_of(v))
    if (has(n)) users.push_back(n);
  return users;
}

bool StageScope::is_recomputed(ValueIndex v) const {
  return makes(v) && !saved(v) && runs_again(value(v).producer);
}

StageScope::Uses::Uses(const StageScope& scope, Phase segment) : begin_(scope.graph().values.size() + 1, 0) {
  const auto for_each = [&](const auto& take) {
    for (const NodeIndex n : scope.nodes()) {
      const bool runs = scope.node(n).phase == segment || (segment == Phase::backward && scope.runs_again(n));
      const std::vector<ValueIndex>& operands = scope.node(n).operands;
      for (std::size_t i = 0; runs && i < operands.size(); ++i)
        take(operands[i], Use{n, static_cast<int>(i)});
    }
  };
  for_each([&](ValueIndex v, const Use&) { ++begin_[v + 1]; });
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  all_.resize(begin_.back());
  std::vector<std::size_t> next = begin_;
  for_each([&](ValueIndex v, const Use& use) { all_[next[v]++] = use; });
}

bool StageScope::made_in(ValueIndex v, Phase segment) const {
  if (!makes(v)) return false;
  return node(value(v).producer).phase == segment || (segment == Phase::backward && is_recomputed(v));
}

std::set<int> StageScope::layers_it_leaves_for(ValueIndex v) const {
  std::set<int> layers;
  for (const NodeIndex n : planning_.uses.users_of(v))
    if (!has(n)) layers.insert(node(n).layer);
  return layers;
}

ValueIndex StageScope::next_of_state(ValueIndex state_value) const {
  const StateIndex state = planning_.uses.state_at[state_value];
  return graph().states[state].next;
}

bool StageScope::updates(ValueIndex state_value) const {
  const ValueIndex next = next_of_state(state_value);
  return next < 0 ? has(planning_.uses.users_of(state_value).front()) : makes(next);
}

}  // namespace alpa
