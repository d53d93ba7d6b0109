#include "libalpa/planner/stage_scope.h"

#include <algorithm>

namespace alpa {

int place_of(const std::vector<int>& list, int value) {
  return static_cast<int>(std::find(list.begin(), list.end(), value) - list.begin());
}

StageScope::StageScope(const PlanningGraph& planning, const StageRequest& request)
    : planning_(planning),
      request_(request),
      canonical_layer_(planning.classes.of_layer.size(), -1),
      copies_(planning.graph->nodes.size(), 0) {
  std::map<int, int> first_of_class;
  for (int layer = request.first_layer; layer < request.end_layer; ++layer) {
    const int first =
        first_of_class.emplace(planning.classes.of_layer[static_cast<std::size_t>(layer)], layer)
            .first->second;
    canonical_layer_[static_cast<std::size_t>(layer)] = first;
    for (const int n : planning.classes.layer_nodes[static_cast<std::size_t>(layer)])
      if (has(n)) nodes_.push_back(n);
  }
  std::sort(nodes_.begin(), nodes_.end());
  for (const int n : nodes_) {
    const int canonical = canonical_node(n);
    if (copies_[static_cast<std::size_t>(canonical)]++ == 0) canonical_nodes_.push_back(canonical);
    // States of equal layers are the operands of equal nodes.
    for (std::size_t i = 0; i < node(n).operands.size(); ++i)
      if (value(node(n).operands[i]).kind == ValueKind::state)
        canonical_state_.emplace(node(n).operands[i], node(canonical).operands[i]);
    values_.insert(values_.end(), node(n).operands.begin(), node(n).operands.end());
    values_.insert(values_.end(), node(n).results.begin(), node(n).results.end());
  }
  std::sort(values_.begin(), values_.end());
  values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  std::sort(canonical_nodes_.begin(), canonical_nodes_.end(),
            [&](int a, int b) { return std::pair(node(a).phase, a) < std::pair(node(b).phase, b); });
  if (request.rematerialize) find_recomputed_nodes();
}

// What a layer's backward takes, and what that is made of, back to what was kept.
void StageScope::find_recomputed_nodes() {
  std::set<int> wanted;
  for (const int n : canonical_nodes_)
    if (node(n).phase == Phase::backward)
      for (const int v : node(n).operands)
        if (makes(v)) wanted.insert(canonical_value(v));
  for (auto n = canonical_nodes_.rbegin(); n != canonical_nodes_.rend(); ++n) {
    if (node(*n).phase != Phase::forward) continue;
    for (const int result : node(*n).results)
      if (wanted.contains(result) && !saved(result)) runs_again_.insert(*n);
    if (runs_again_.contains(*n)) wanted.insert(node(*n).operands.begin(), node(*n).operands.end());
  }
}

bool StageScope::has(int n) const {
  return canonical_layer_[static_cast<std::size_t>(node(n).layer)] >= 0 && !node(n).op->reduces_globally;
}

bool StageScope::makes(int v) const { return value(v).producer >= 0 && has(value(v).producer); }

int StageScope::canonical_node(int n) const {
  const auto& [of_layer, layer_nodes, place] = planning_.classes;
  const int layer = canonical_layer_[static_cast<std::size_t>(node(n).layer)];
  return layer_nodes[static_cast<std::size_t>(layer)]
                    [static_cast<std::size_t>(place[static_cast<std::size_t>(n)])];
}

int StageScope::canonical_value(int v) const {
  if (makes(v)) {
    const int producer = value(v).producer;
    return node(canonical_node(producer))
        .results[static_cast<std::size_t>(place_of(node(producer).results, v))];
  }
  const auto at = canonical_state_.find(v);
  return at == canonical_state_.end() ? v : at->second;
}

std::vector<int> StageScope::users(int v) const {
  std::vector<int> users;
  for (const int n : planning_.consumers[static_cast<std::size_t>(v)])
    if (has(n)) users.push_back(n);
  return users;
}

bool StageScope::leaves(int v) const {
  const auto& consumers = planning_.consumers[static_cast<std::size_t>(v)];
  return std::any_of(consumers.begin(), consumers.end(), [&](int n) { return !has(n); });
}

bool StageScope::saved(int v) const {
  if (value(v).kind == ValueKind::state) return false;
  const int producer = value(v).producer;
  if (producer >= 0 && node(producer).phase != Phase::forward) return false;
  for (const int n : planning_.consumers[static_cast<std::size_t>(v)]) {
    if (!has(n) || node(n).phase == Phase::update) continue;
    if (request_.rematerialize ? producer < 0 || node(n).layer != node(producer).layer
                               : node(n).phase == Phase::backward)
      return true;
  }
  return false;
}

bool StageScope::made_again(int v) const {
  if (!request_.rematerialize || !makes(v) || node(value(v).producer).phase != Phase::forward || saved(v))
    return false;
  const std::vector<int> consumers = users(v);
  return std::any_of(consumers.begin(), consumers.end(),
                     [&](int n) { return node(n).phase == Phase::backward; });
}

bool StageScope::updates(int state_value) const {
  const int state = planning_.state_at[static_cast<std::size_t>(state_value)];
  if (state < 0) return false;
  const int next = graph().states[static_cast<std::size_t>(state)].next;
  return next < 0 || makes(next);
}

}  // namespace alpa
