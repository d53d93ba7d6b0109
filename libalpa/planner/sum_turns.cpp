#include "libalpa/planner/sum_turns.h"

#include <algorithm>
#include <set>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

constexpr Word<SumOrder> kOrders[] = {
    {"ready", SumOrder::ready, "as the backward is done with them"},
    {"first-use", SumOrder::first_use,
     "of those that wait what the next forward uses first, as ByteScheduler does without preemption; pays "
     "with --updates next-forward"},
};

}  // namespace

std::span<const Word<SumOrder>> sum_order_words() { return kOrders; }

std::vector<int> turns_by_first_use(const std::vector<WaitingSum>& sums) {
  std::vector<int> turns(sums.size(), 0);
  double now_s = 0;
  for (int turn = 1; turn <= static_cast<int>(sums.size()); ++turn) {
    double first_s = infinity;
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (turns[i] == 0) first_s = std::min(first_s, sums[i].ready_s);
    now_s = std::max(now_s, first_s);
    std::size_t next = sums.size();
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (turns[i] == 0 && sums[i].ready_s <= now_s &&
          (next == sums.size() || sums[i].first_use < sums[next].first_use))
        next = i;
    turns[next] = turn;
    now_s += sums[next].seconds;
  }
  return turns;
}

int first_use_after(const GraphUses& uses, ValueIndex sum) {
  const Graph& graph = uses.graph;
  const auto none = static_cast<int>(graph.nodes.size());
  int first = none;
  std::vector<ValueIndex> open{sum};  // what the update makes of it
  std::set<ValueIndex> known{sum};
  while (!open.empty()) {
    const ValueIndex value = open.back();
    open.pop_back();
    for (const NodeIndex n : uses.users_of(value)) {
      if (node_of(graph, n).phase != Phase::update) continue;
      for (const ValueIndex result : node_of(graph, n).results) {
        const StateIndex state = uses.state_after_value(result);
        if (known.insert(result).second) open.push_back(result);
        if (state < 0) continue;
        for (const NodeIndex user : uses.users_of(graph.states[state].value))
          if (node_of(graph, user).phase == Phase::forward) first = std::min(first, static_cast<int>(user));
      }
    }
  }
  return first;
}

}  // namespace alpa
