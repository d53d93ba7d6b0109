#include "libalpa/semantics/stage_semantics.h"

#include <algorithm>

namespace alpa {

bool StageSemantics::has(int n) const {
  const Node& node = node_of(graph(), n);
  return node.layer >= range_.first_layer && node.layer < range_.end_layer && !node.op->reduces_globally;
}

bool StageSemantics::makes(int value) const {
  const int producer = value_of(graph(), value).producer;
  return producer >= 0 && has(producer);
}

bool StageSemantics::leaves(int value) const {
  return std::ranges::any_of(uses_.users_of(value), [&](int n) { return !has(n); });
}

bool StageSemantics::is_saved(int v) const {
  const Value& value = value_of(graph(), v);
  if (value.kind == ValueKind::state) return false;
  const Node* maker = value.producer < 0 ? nullptr : &node_of(graph(), value.producer);
  if (maker && maker->phase != Phase::forward) return false;
  bool in_forward = maker, in_backward = false;
  for (const int n : uses_.users_of(v)) {
    if (!has(n)) continue;
    const Node& user = node_of(graph(), n);
    if (user.phase == Phase::forward) in_forward = true;
    if (range_.rematerialize ? user.phase != Phase::update && (!maker || user.layer != maker->layer)
                             : user.phase == Phase::backward)
      in_backward = true;
  }
  return in_forward && in_backward;
}

std::vector<int> StageSemantics::saved_values() const {
  std::vector<int> saved;
  for (int v = 0; v < static_cast<int>(graph().values.size()); ++v)
    if (is_saved(v)) saved.push_back(v);
  return saved;
}

std::vector<bool> StageSemantics::recomputed(const std::vector<bool>& kept) const {
  std::vector<bool> again(graph().nodes.size());
  if (!range_.rematerialize) return again;
  std::vector<bool> wanted(graph().values.size());
  const auto want = [&](const Node& node) {
    for (const int operand : node.operands) wanted[operand] = true;
  };
  for (int n = 0; n < static_cast<int>(again.size()); ++n)
    if (has(n) && node_of(graph(), n).phase == Phase::backward) want(node_of(graph(), n));
  for (int n = static_cast<int>(again.size()) - 1; n >= 0; --n) {
    const Node& node = node_of(graph(), n);
    if (!has(n) || node.phase != Phase::forward) continue;
    const bool needed = std::ranges::any_of(node.results, [&](int result) {
      const auto r = static_cast<std::size_t>(result);
      return wanted[r] && !kept[r];
    });
    if (!needed) continue;
    again[n] = true;
    want(node);
  }
  return again;
}

std::vector<int> StageSemantics::order(Phase segment, const std::vector<bool>& kept) const {
  std::vector<int> order;
  const auto of_phase = [&](Phase phase) {
    std::vector<int> nodes;
    for (int n = 0; n < static_cast<int>(graph().nodes.size()); ++n)
      if (has(n) && node_of(graph(), n).phase == phase) nodes.push_back(n);
    return nodes;
  };
  if (segment != Phase::backward) return of_phase(segment);
  const std::vector<bool> again = recomputed(kept);
  std::vector<std::vector<int>> of_layer(static_cast<std::size_t>(range_.end_layer - range_.first_layer));
  const auto sort_in = [&](int n) { of_layer[node_of(graph(), n).layer - range_.first_layer].push_back(n); };
  for (const int n : of_phase(Phase::forward))
    if (again[n]) sort_in(n);
  for (const int n : of_phase(Phase::backward)) sort_in(n);
  std::vector<bool> done(graph().nodes.size());
  for (auto layer = of_layer.rbegin(); layer != of_layer.rend(); ++layer)
    for (const int n : *layer) {
      if (done[n]) continue;
      order.push_back(n);
      if (node_of(graph(), n).phase == Phase::forward) continue;
      for (const int result : node_of(graph(), n).results)
        for (const int user : uses_.users_of(result)) {
          if (!node_of(graph(), user).op->sums_micro_batches || !has(user)) continue;
          if (!done[user]) order.push_back(user);
          done[user] = true;
        }
    }
  return order;
}

int StageSemantics::sum_in_kernel(int n) const {
  const Node& node = node_of(graph(), n);
  if (!node.op->accumulates || node.phase != Phase::backward || node.op->sums_micro_batches) return -1;
  const std::vector<int>& users = uses_.users_of(node.results[0]);
  const bool alone = users.size() == 1 && has(users[0]) && node_of(graph(), users[0]).op->sums_micro_batches;
  return alone ? users[0] : -1;
}

int StageSemantics::kernel_of_sum(int sum) const {
  const Node& node = node_of(graph(), sum);
  if (!node.op->sums_micro_batches) return -1;
  const int producer = value_of(graph(), node.operands[0]).producer;
  return producer >= 0 && has(producer) && sum_in_kernel(producer) == sum ? producer : -1;
}

}  // namespace alpa
