#include "libalpa/solver/selection/presolve.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "libalpa/solver/selection/presolve_rules.h"

namespace alpa {

void Presolving::mark_gone(int node, int strategy) {
  auto& gone = nodes[node].gone;
  if (gone.empty()) gone.assign(nodes[node].cost.size(), 0);
  gone[strategy] = 1;
}

void Presolving::change(int node) {
  nodes[node].changed = true;
  for (int e : nodes[node].edges) nodes[edges[e].from].changed = nodes[edges[e].to].changed = true;
}

void Presolving::bury(int node) {
  assert(nodes[node].edges.empty());
  nodes[node] = Node{};
  nodes[node].alive = false;
}

void add_edge(Presolving& state, int from, int to, std::vector<double> cost) {
  assert(from != to && std::ssize(cost) == std::ptrdiff_t{state.strategies(from)} * state.strategies(to));
  const int e = static_cast<int>(state.edges.size());
  const bool forbids = std::any_of(cost.begin(), cost.end(), [](double c) { return std::isinf(c); });
  state.edges.push_back({true, true, forbids, from, to, std::move(cost)});
  state.nodes[from].edges.push_back(e);
  state.nodes[to].edges.push_back(e);
  state.nodes[from].changed = state.nodes[to].changed = true;
}

void remove_edge(Presolving& state, int e) {
  auto& edge = state.edges[e];
  edge.alive = false;
  edge.cost = {};
  for (int node : {edge.from, edge.to}) std::erase(state.nodes[node].edges, e);
  state.nodes[edge.from].changed = state.nodes[edge.to].changed = true;
}

Presolving begin_presolve(const SelectionNetwork& network) {
  Presolving state;
  for (const auto& node : network.nodes) {
    auto& copy = state.nodes.emplace_back();
    copy.label.resize(node.cost.size());
    std::iota(copy.label.begin(), copy.label.end(), 0);
    copy.cost = node.cost;
    copy.pieces = node.pieces;
    if (node.cost.empty()) state.verdict = ReducedNetwork::Verdict::forbidden;
  }
  for (const auto& edge : network.edges) add_edge(state, edge.from, edge.to, edge.cost);
  state.capacity = network.capacity;
  state.time_point.resize(network.capacity.size());
  std::iota(state.time_point.begin(), state.time_point.end(), 0);
  state.constant = network.constant;
  return state;
}

ReducedNetwork end_presolve(Presolving state) {
  ReducedNetwork reduced;
  reduced.verdict = state.verdict;
  if (!state.open()) return reduced;
  std::vector<int> index(state.nodes.size(), -1);
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    auto& node = state.nodes[i];
    if (!node.alive) continue;
    const double least = *std::min_element(node.cost.begin(), node.cost.end());
    for (double& cost : node.cost) cost -= least;
    state.constant += least;
    index[i] = static_cast<int>(reduced.network.nodes.size());
    state.lifting.keep(static_cast<int>(i), std::move(node.label));
    reduced.network.nodes.push_back({std::move(node.cost), std::move(node.pieces)});
  }
  for (auto& edge : state.edges) {
    if (edge.alive) reduced.network.edges.push_back({index[edge.from], index[edge.to], std::move(edge.cost)});
  }
  reduced.network.capacity = std::move(state.capacity);
  reduced.network.constant = state.constant;
  reduced.lifting = std::move(state.lifting);
  reduced.time_point = std::move(state.time_point);
  return reduced;
}

ReducedNetwork presolve(const SelectionNetwork& network, CapacityMeaning meaning) {
  Presolving state = begin_presolve(network);
  state.capacity_is_limit = meaning == CapacityMeaning::limit;
  // Each round costs little when nothing is marked as changed; real graphs need three to six.
  constexpr int max_rounds = 50;
  bool changed = true;
  for (int round = 0; round < max_rounds && changed && state.open(); ++round) {
    changed = false;
    for (auto* rule : {remove_unsupported, contract_decided_nodes, settle_edges, settle_memory,
                       drop_time_points, remove_oversized, remove_unsupported, remove_dominated, settle_edges,
                       settle_memory, eliminate_low_degrees}) {
      if (state.open()) changed |= rule(state);
    }
  }
  return end_presolve(std::move(state));
}

}  // namespace alpa
