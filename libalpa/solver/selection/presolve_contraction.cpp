#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "libalpa/solver/selection/presolve_rules.h"

namespace alpa {
namespace {

// "Every strategy a of one node allows only strategy map[a] of the node `decided`."
struct Rule {
  int decided;
  std::vector<int> map;
};

// The node that decides a node, and how; a node that nobody decides has itself as root.
struct Membership {
  int root = -1;
  std::vector<int> map;
};

// The rule that the edge imposes on its end `to` (or, seen from the columns, on `from`); empty map when it
// does not.
std::vector<int> decision_map(const std::vector<double>& cost, std::ptrdiff_t count, std::ptrdiff_t stride,
                              std::ptrdiff_t partners, std::ptrdiff_t partner_stride) {
  std::vector<int> map(count, -1);
  for (std::ptrdiff_t a = 0; a < count; ++a) {
    for (std::ptrdiff_t b = 0; b < partners; ++b) {
      if (std::isinf(cost[a * stride + b * partner_stride])) continue;
      if (map[a] >= 0) return {};
      map[a] = static_cast<int>(b);
    }
    if (map[a] < 0) return {};
  }
  return map;
}

std::vector<std::vector<Rule>> find_rules(const Presolving& state) {
  std::vector<std::vector<Rule>> rules(state.nodes.size());
  for (const auto& edge : state.edges) {
    if (!edge.alive || !edge.forbids) continue;
    const std::ptrdiff_t rows = state.strategies(edge.from), columns = state.strategies(edge.to);
    if (rows >= columns) {
      auto map = decision_map(edge.cost, rows, columns, columns, 1);
      if (!map.empty()) rules[edge.from].push_back({edge.to, std::move(map)});
    }
    if (columns >= rows) {
      auto map = decision_map(edge.cost, columns, 1, rows, columns);
      if (!map.empty()) rules[edge.to].push_back({edge.from, std::move(map)});
    }
  }
  return rules;
}

// Spreads from the nodes with most strategies: who decides a node has at least as many as it.
std::vector<Membership> find_roots(const Presolving& state, const std::vector<std::vector<Rule>>& rules) {
  std::vector<int> order(state.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return state.strategies(a) > state.strategies(b); });
  std::vector<Membership> member(state.nodes.size());
  for (int root : order) {
    if (!state.nodes[root].alive || member[root].root >= 0) continue;
    member[root] = {root, std::vector<int>(state.strategies(root))};
    std::iota(member[root].map.begin(), member[root].map.end(), 0);
    std::vector<int> queue{root};
    for (std::size_t head = 0; head < queue.size(); ++head) {
      for (const Rule& rule : rules[queue[head]]) {
        if (member[rule.decided].root >= 0) continue;
        std::vector<int> map;
        for (int a : member[queue[head]].map) map.push_back(rule.map[a]);
        member[rule.decided] = {root, std::move(map)};
        queue.push_back(rule.decided);
      }
    }
  }
  return member;
}

void merge_nodes(Presolving& state, const std::vector<Membership>& member) {
  std::map<int, std::vector<int>> groups;
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    if (state.nodes[i].alive && member[i].root != i) groups[member[i].root].push_back(i);
  }
  for (const auto& [root, nodes] : groups) {
    auto& target = state.nodes[root];
    std::vector<MappedPieces> parts{{&target.pieces, &member[root].map}};
    for (int i : nodes) {
      const auto& node = state.nodes[i];
      std::vector<int> label;
      for (std::size_t a = 0; a < target.cost.size(); ++a) {
        target.cost[a] += node.cost[member[i].map[a]];
        label.push_back(node.label[member[i].map[a]]);
      }
      if (!node.pieces.empty()) parts.emplace_back(&node.pieces, &member[i].map);
      state.lifting.decide({i, {root}, {target.label}, std::move(label)});
    }
    if (parts.size() > 1) target.pieces = sum_of_pieces(parts, state.strategies(root));
    target.changed = true;
  }
}

// Costs of an edge between two merged nodes, added to `sum` over the strategies of their roots.
void add_mapped(const Presolving::Edge& edge, const Membership& from, const Membership& to,
                std::ptrdiff_t columns, std::vector<double>& sum) {
  auto out = sum.begin();
  for (int a : from.map) {
    const double* row = edge.cost.data() + a * columns;
    for (int b : to.map) *out++ += row[b];
  }
}

void merge_edges(Presolving& state, const std::vector<Membership>& member) {
  std::map<std::pair<int, int>, std::vector<double>> sums;
  for (int e = 0; e < std::ssize(state.edges); ++e) {
    const auto& edge = state.edges[e];
    if (!edge.alive) continue;
    const Membership *from = &member[edge.from], *to = &member[edge.to];
    if (from->root == edge.from && to->root == edge.to) continue;
    const std::ptrdiff_t columns = state.strategies(edge.to);
    if (from->root == to->root) {
      auto& cost = state.nodes[from->root].cost;
      for (std::size_t a = 0; a < cost.size(); ++a) cost[a] += edge.cost[from->map[a] * columns + to->map[a]];
    } else {
      auto& sum = sums[{from->root, to->root}];
      sum.resize(from->map.size() * to->map.size(), 0);
      add_mapped(edge, *from, *to, columns, sum);
    }
    remove_edge(state, e);
  }
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    if (state.nodes[i].alive && member[i].root != i) state.bury(i);
  }
  for (auto& [ends, cost] : sums) add_edge(state, ends.first, ends.second, std::move(cost));
}

}  // namespace

bool contract_decided_nodes(Presolving& state) {
  const auto member = find_roots(state, find_rules(state));
  bool merges = false;
  for (int i = 0; i < std::ssize(state.nodes); ++i) merges |= state.nodes[i].alive && member[i].root != i;
  if (!merges) return false;
  merge_nodes(state, member);
  merge_edges(state, member);
  return true;
}

}  // namespace alpa
