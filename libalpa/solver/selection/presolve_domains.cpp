#include <algorithm>
#include <cmath>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/presolve_rules.h"

namespace alpa {
namespace {

bool is_gone(const Presolving::Node& node, int strategy) { return !node.gone.empty() && node.gone[strategy]; }

// Allowed partners per strategy of either end of an edge (arc consistency by counting: Mohr and Henderson,
// 1986).
struct Support {
  std::vector<int> of_from, of_to;
};

class SupportCounting {
 public:
  explicit SupportCounting(Presolving& state) : state_(state), support_(state.edges.size()) {
    for (int i = 0; i < std::ssize(state.nodes); ++i) {
      for (int a = 0; a < state.strategies(i); ++a) {
        if (std::isinf(state.nodes[i].cost[a])) state.mark_gone(i, a), any_removed_ = true;
      }
    }
    for (int e = 0; e < std::ssize(state.edges); ++e) {
      if (state.edges[e].alive && state.edges[e].forbids) count(e);
    }
  }

  bool run() {
    for (int e = 0; e < std::ssize(state_.edges); ++e) {
      remove_lonely(state_.edges[e].from, support_[e].of_from);
      remove_lonely(state_.edges[e].to, support_[e].of_to);
    }
    while (!queue_.empty()) {
      const auto [node, strategy] = queue_.back();
      queue_.pop_back();
      for (int e : state_.nodes[node].edges) withdraw(e, node, strategy);
    }
    return any_removed_;
  }

 private:
  void count(int e) {
    const auto& edge = state_.edges[e];
    const int rows = state_.strategies(edge.from), columns = state_.strategies(edge.to);
    auto& [of_from, of_to] = support_[e];
    of_from.assign(rows, 0);
    of_to.assign(columns, 0);
    std::vector<int> column_counts;
    for (int b = 0; b < columns; ++b) column_counts.push_back(!is_gone(state_.nodes[edge.to], b));
    const double* cell = edge.cost.data();
    for (int a = 0; a < rows; ++a, cell += columns) {
      const int row_counts = !is_gone(state_.nodes[edge.from], a);
      int partners = 0;
      for (int b = 0; b < columns; ++b) {
        const int is_allowed = cell[b] < infinity;
        partners += is_allowed & column_counts[b];
        of_to[b] += is_allowed & row_counts;
      }
      of_from[a] = partners;
    }
  }

  void remove(int node, int strategy) {
    if (is_gone(state_.nodes[node], strategy)) return;
    state_.mark_gone(node, strategy);
    queue_.emplace_back(node, strategy);
    any_removed_ = true;
  }

  void remove_lonely(int node, const std::vector<int>& partners) {
    for (int a = 0; a < std::ssize(partners); ++a) {
      if (partners[a] == 0) remove(node, a);
    }
  }

  void withdraw(int e, int node, int strategy) {
    const auto& edge = state_.edges[e];
    if (support_[e].of_from.empty()) return;
    const std::ptrdiff_t columns = state_.strategies(edge.to);
    const bool is_from = edge.from == node;
    auto& partners = is_from ? support_[e].of_to : support_[e].of_from;
    const double* cell = edge.cost.data() + (is_from ? strategy * columns : strategy);
    const std::ptrdiff_t stride = is_from ? 1 : columns;
    for (int b = 0; b < std::ssize(partners); ++b, cell += stride) {
      if (!std::isinf(*cell) && --partners[b] == 0) remove(is_from ? edge.to : edge.from, b);
    }
  }

  Presolving& state_;
  std::vector<Support> support_;
  std::vector<std::pair<int, int>> queue_;  // node and strategy, gone but still counted as a partner
  bool any_removed_ = false;
};

// Whether strategy b of the node is never worse than a, in cost and in memory, whatever the neighbours do.
// Edges have row and column minima 0, so every edge can only take away from b's lead.
bool dominates(const Presolving& state, int node, int b, int a) {
  const auto& self = state.nodes[node];
  double lead = self.cost[a] - self.cost[b];
  if (lead < 0) return false;
  for (const auto& piece : self.pieces) {
    if (piece.memory[b] > piece.memory[a]) return false;
  }
  for (int e : self.edges) {
    const auto& edge = state.edges[e];
    const std::ptrdiff_t columns = state.strategies(edge.to);
    const bool is_from = edge.from == node;
    const std::ptrdiff_t stride = is_from ? 1 : columns,
                         count = is_from ? columns : state.strategies(edge.from);
    const double* of_a = edge.cost.data() + (is_from ? a * columns : a);
    const double* of_b = edge.cost.data() + (is_from ? b * columns : b);
    double least = 0;
    for (std::ptrdiff_t d = 0; d < count; ++d, of_a += stride, of_b += stride) {
      if (std::isinf(*of_a)) continue;
      least = std::min(least, *of_a - *of_b);
      if (lead + least < 0) return false;
    }
    lead += least;
  }
  return true;
}

}  // namespace

bool remove_unsupported(Presolving& state) {
  const bool removed = SupportCounting(state).run();
  if (removed) compact_strategies(state);
  return removed;
}

bool remove_dominated(Presolving& state) {
  bool removed = false;
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    auto& node = state.nodes[i];
    if (!node.alive || !node.changed) continue;
    node.changed = false;
    for (int a = 0; a < state.strategies(i); ++a) {
      for (int b = 0; b < state.strategies(i); ++b) {
        if (a == b || is_gone(node, b) || !dominates(state, i, b, a)) continue;
        state.mark_gone(i, a);
        removed = true;
        break;
      }
    }
  }
  if (removed) compact_strategies(state);
  return removed;
}

bool remove_oversized(Presolving& state) {
  if (!state.capacity_is_limit) return false;
  bool removed = false;
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    for (const auto& piece : state.nodes[i].pieces) {
      const auto least =
          *std::min_element(state.capacity.begin() + piece.begin, state.capacity.begin() + piece.end);
      for (int a = 0; a < state.strategies(i); ++a) {
        if (piece.memory[a] > least) state.mark_gone(i, a), removed = true;
      }
    }
  }
  if (!removed) return false;
  compact_strategies(state);
  if (!state.open()) state.verdict = ReducedNetwork::Verdict::memory;
  return true;
}

void compact_strategies(Presolving& state) {
  std::vector<std::vector<int>> kept(state.nodes.size());
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    auto& node = state.nodes[i];
    for (int a = 0; a < state.strategies(i) && !node.gone.empty(); ++a) {
      if (!node.gone[a]) kept[i].push_back(a);
    }
    if (!node.gone.empty() && kept[i].empty()) state.verdict = ReducedNetwork::Verdict::forbidden;
  }
  if (!state.open()) return;
  for (auto& edge : state.edges) {
    if (!edge.alive || (kept[edge.from].empty() && kept[edge.to].empty())) continue;
    const int rows = state.strategies(edge.from), columns = state.strategies(edge.to);
    const auto& row_gone = state.nodes[edge.from].gone;
    const auto& column_gone = state.nodes[edge.to].gone;
    auto out = edge.cost.begin();
    edge.forbids = false;
    for (int a = 0; a < rows; ++a) {
      if (!row_gone.empty() && row_gone[a]) continue;
      for (int b = 0; b < columns; ++b) {
        if (!column_gone.empty() && column_gone[b]) continue;
        const double cell = edge.cost[static_cast<std::size_t>(a) * columns + b];
        edge.forbids |= cell == infinity;
        *out++ = cell;
      }
    }
    edge.cost.erase(out, edge.cost.end());
    edge.changed = true;
  }
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    if (kept[i].empty()) continue;
    auto& node = state.nodes[i];
    const auto keep = [&](auto& values) {
      for (std::size_t k = 0; k < kept[i].size(); ++k) values[k] = values[kept[i][k]];
      values.resize(kept[i].size());
    };
    keep(node.label);
    keep(node.cost);
    for (auto& piece : node.pieces) keep(piece.memory);
    node.gone.clear();
    state.change(i);
  }
}

}  // namespace alpa
