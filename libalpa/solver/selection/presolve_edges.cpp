#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/presolve_rules.h"

namespace alpa {
namespace {

// Residues of sums that are zero but for rounding, relative to the edge's largest entry.
constexpr double rounding = 1e-13;

// A node may be eliminated when the table over its neighbours and the work to fill it stay below these.
constexpr std::ptrdiff_t max_new_cells = 250'000, max_new_work = 30'000'000;

std::vector<double> transposed(const std::vector<double>& cost, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  std::vector<double> result(cost.size());
  for (std::ptrdiff_t a = 0; a < rows; ++a) {
    for (std::ptrdiff_t b = 0; b < columns; ++b) result[b * rows + a] = cost[a * columns + b];
  }
  return result;
}

bool add_up_parallel_edges(Presolving& state) {
  std::map<std::pair<int, int>, int> first;
  bool changed = false;
  for (int e = 0; e < std::ssize(state.edges); ++e) {
    auto& edge = state.edges[e];
    if (!edge.alive) continue;
    const auto [at, is_new] = first.emplace(std::minmax(edge.from, edge.to), e);
    if (is_new) continue;
    auto& sum = state.edges[at->second];
    if (sum.from != edge.from) {
      edge.cost = transposed(edge.cost, state.strategies(edge.from), state.strategies(edge.to));
    }
    for (std::size_t k = 0; k < sum.cost.size(); ++k) sum.cost[k] += edge.cost[k];
    sum.forbids |= edge.forbids;
    sum.changed = true;
    remove_edge(state, e);
    changed = true;
  }
  return changed;
}

// Moves finite row minima of the edge into `node_cost`; returns whether any was not zero.
bool move_minima(double* cell, std::ptrdiff_t count, std::ptrdiff_t stride, double& node_cost) {
  double least = infinity;
  for (std::ptrdiff_t k = 0; k < count; ++k) least = std::min(least, cell[k * stride]);
  if (least == 0) return false;
  node_cost += least;  // infinite without an allowed partner: the next round removes the strategy
  if (std::isinf(least)) return true;
  for (std::ptrdiff_t k = 0; k < count; ++k) cell[k * stride] -= least;
  return true;
}

bool settle_edge(Presolving& state, int e) {
  auto& edge = state.edges[e];
  edge.changed = false;
  const std::ptrdiff_t rows = state.strategies(edge.from), columns = state.strategies(edge.to);
  double scale = 0;
  for (double c : edge.cost) {
    if (!std::isinf(c)) scale = std::max(scale, std::abs(c));
  }
  bool moved = false;
  for (std::ptrdiff_t a = 0; a < rows; ++a) {
    moved |= move_minima(edge.cost.data() + a * columns, columns, 1, state.nodes[edge.from].cost[a]);
  }
  for (std::ptrdiff_t b = 0; b < columns; ++b) {
    moved |= move_minima(edge.cost.data() + b, rows, columns, state.nodes[edge.to].cost[b]);
  }
  bool empty = true;
  for (double& c : edge.cost) {
    if (c <= rounding * scale) c = 0;
    empty &= c == 0;
  }
  if (moved) state.change(edge.from), state.change(edge.to);
  if (empty) remove_edge(state, e);
  return moved || empty;
}

// The edge's costs with the rows as strategies of `node`.
std::vector<double> seen_from(const Presolving& state, int e, int node) {
  const auto& edge = state.edges[e];
  if (edge.from == node) return edge.cost;
  return transposed(edge.cost, state.strategies(edge.from), state.strategies(edge.to));
}

int neighbour(const Presolving& state, int node, int k) {
  const auto& edge = state.edges[state.nodes[node].edges[k]];
  return edge.from == node ? edge.to : edge.from;
}

// Takes `node` out of the graph; its best label for all labels of its neighbours is `label`.
void take_out(Presolving& state, int node, std::vector<int> parents, std::vector<int> label) {
  std::vector<std::vector<int>> parent_labels;
  for (int parent : parents) parent_labels.push_back(state.nodes[parent].label);
  state.lifting.decide({node, std::move(parents), std::move(parent_labels), std::move(label)});
  while (!state.nodes[node].edges.empty()) remove_edge(state, state.nodes[node].edges.back());
  state.bury(node);
}

void eliminate_isolated(Presolving& state, int node) {
  const auto& self = state.nodes[node];
  const auto best = std::min_element(self.cost.begin(), self.cost.end());
  if (std::isinf(*best)) {
    state.verdict = ReducedNetwork::Verdict::forbidden;
    return;
  }
  state.constant += *best;
  take_out(state, node, {}, {self.label[best - self.cost.begin()]});
}

// The best reply to each strategy of the only neighbour; empty when one that is best in cost is not best in
// memory too.
std::vector<int> best_replies(const Presolving& state, int node) {
  const auto& self = state.nodes[node];
  const int parent = neighbour(state, node, 0);
  const auto cost = seen_from(state, self.edges[0], parent);
  const std::size_t width = self.cost.size();
  std::vector<int> reply;
  for (int d = 0; d < state.strategies(parent); ++d) {
    const auto row = std::span(cost).subspan(d * width, width);
    std::size_t best = 0;
    const auto total = [&](std::size_t a) { return self.cost[a] + row[a]; };
    const auto leaner = [&](std::size_t a, std::size_t b) {
      return std::all_of(self.pieces.begin(), self.pieces.end(),
                         [&](const auto& piece) { return piece.memory[a] <= piece.memory[b]; });
    };
    for (std::size_t a = 1; a < width; ++a) {
      if (total(a) < total(best) || (total(a) == total(best) && leaner(a, best))) best = a;
    }
    for (std::size_t a = 0; a < width; ++a) {
      if (!std::isinf(total(a)) && !leaner(best, a)) return {};
    }
    reply.push_back(static_cast<int>(best));
  }
  return reply;
}

bool fold_leaf(Presolving& state, int node) {
  const auto reply = best_replies(state, node);
  if (reply.empty()) return false;
  const int parent = neighbour(state, node, 0);
  auto& self = state.nodes[node];
  auto& target = state.nodes[parent];
  const auto cost = seen_from(state, self.edges[0], parent);
  std::vector<int> label(reply.size()), same(reply.size());
  for (std::size_t d = 0; d < reply.size(); ++d) {
    target.cost[d] += self.cost[reply[d]] + cost[d * self.cost.size() + reply[d]];
    label[d] = self.label[reply[d]];
    same[d] = static_cast<int>(d);
  }
  const MappedPieces parts[] = {{&target.pieces, &same}, {&self.pieces, &reply}};
  if (!self.pieces.empty()) target.pieces = sum_of_pieces({parts[0], parts[1]}, state.strategies(parent));
  state.change(parent);
  take_out(state, node, {parent}, std::move(label));
  return true;
}

bool eliminate_between(Presolving& state, int node) {
  const auto& self = state.nodes[node];
  const int u = neighbour(state, node, 0), w = neighbour(state, node, 1);
  const std::ptrdiff_t width = std::ssize(self.cost), rows = state.strategies(u),
                       columns = state.strategies(w);
  if (u == w || rows * columns > max_new_cells || rows * columns * width > max_new_work) return false;
  const auto cost_u = seen_from(state, self.edges[0], u), cost_w = seen_from(state, self.edges[1], node);
  std::vector<double> cost(rows * columns, infinity);
  std::vector<int> label(rows * columns, self.label[0]);
  for (std::ptrdiff_t d = 0; d < rows; ++d) {
    for (std::ptrdiff_t a = 0; a < width; ++a) {
      const double here = self.cost[a] + cost_u[d * width + a];
      for (std::ptrdiff_t f = 0; f < columns; ++f) {
        const double total = here + cost_w[a * columns + f];
        if (total >= cost[d * columns + f]) continue;
        cost[d * columns + f] = total;
        label[d * columns + f] = self.label[a];
      }
    }
  }
  take_out(state, node, {u, w}, std::move(label));
  add_edge(state, u, w, std::move(cost));
  return true;
}

}  // namespace

bool settle_edges(Presolving& state) {
  bool changed = add_up_parallel_edges(state);
  for (int e = 0; e < std::ssize(state.edges); ++e) {
    if (state.edges[e].alive && state.edges[e].changed) changed |= settle_edge(state, e);
  }
  return changed;
}

bool eliminate_low_degrees(Presolving& state) {
  bool changed = false;
  std::vector<int> queue;
  for (int i = static_cast<int>(state.nodes.size()) - 1; i >= 0; --i) {
    if (state.nodes[i].alive && state.nodes[i].edges.size() <= 2) queue.push_back(i);
  }
  while (!queue.empty() && state.open()) {
    const int i = queue.back();
    queue.pop_back();
    const auto& node = state.nodes[i];
    const std::size_t degree = node.edges.size();
    if (!node.alive || degree > 2 || (degree != 1 && !node.pieces.empty())) continue;
    std::vector<int> neighbours;
    for (std::size_t k = 0; k < degree; ++k) neighbours.push_back(neighbour(state, i, static_cast<int>(k)));
    bool out = degree != 1 || fold_leaf(state, i);
    if (degree == 0) eliminate_isolated(state, i);
    if (degree == 2) out = eliminate_between(state, i);
    if (!out) continue;
    changed = true;
    queue.insert(queue.end(), neighbours.begin(), neighbours.end());
  }
  return changed;
}

}  // namespace alpa
