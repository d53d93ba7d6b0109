#include "libalpa/solver/selection/selection_network.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace alpa {

std::int64_t SelectionNetwork::edge_cells() const {
  std::int64_t cells = 0;
  for (const Edge& edge : edges) cells += std::ssize(edge.cost);
  return cells;
}

namespace {

// Its memory between each two of the points where some of it begins or ends.
template <typename Point>
std::vector<SelectionNetwork::Piece> pieces_of(const SelectionProblem::Node& node, const Point& point) {
  std::vector<int> times;
  for (const auto& [begin, end, bytes] : node.memory)
    if (begin < end) times.insert(times.end(), {begin, end});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::vector<SelectionNetwork::Piece> pieces;
  for (std::size_t t = 0; t + 1 < times.size(); ++t) {
    std::vector<std::int64_t> sum(node.cost.size(), 0);
    bool any = false;
    for (const auto& [begin, end, bytes] : node.memory) {
      if (begin > times[t] || end < times[t + 1]) continue;
      std::transform(sum.begin(), sum.end(), bytes.begin(), sum.begin(), std::plus<>());
      any = true;
    }
    if (any) pieces.push_back({point(times[t]), point(times[t + 1]), std::move(sum)});
  }
  return pieces;
}

}  // namespace

SelectionNetwork selection_network(const SelectionProblem& problem) {
  const bool limited = problem.memory_limit >= 0;
  std::vector<int> ends;
  for (const auto& node : problem.nodes) {
    for (const auto& [begin, end, bytes] : node.memory)
      if (limited && begin < end) ends.insert(ends.end(), {begin, end});
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const auto point = [&](int time) {
    return static_cast<int>(std::lower_bound(ends.begin(), ends.end(), time) - ends.begin());
  };

  SelectionNetwork network;
  network.capacity.assign(ends.empty() ? 0 : ends.size() - 1, problem.memory_limit);
  for (const auto& node : problem.nodes) {
    auto& copy = network.nodes.emplace_back();
    copy.cost = node.cost;
    if (limited) copy.pieces = pieces_of(node, point);
  }
  for (const auto& edge : problem.edges) network.edges.push_back({edge.from, edge.to, edge.cost});
  return network;
}

SelectionNetwork without_memory(SelectionNetwork network) {
  network.capacity.clear();
  for (auto& node : network.nodes) node.pieces.clear();
  return network;
}

std::vector<std::vector<int>> incident_edges(const SelectionNetwork& network) {
  std::vector<std::vector<int>> incident(network.nodes.size());
  for (int e = 0; e < std::ssize(network.edges); ++e) {
    incident[network.edges[e].from].push_back(e);
    incident[network.edges[e].to].push_back(e);
  }
  return incident;
}

void add_edge_costs(const SelectionNetwork& network, const SelectionNetwork::Edge& edge, int node,
                    int other_strategy, std::span<double> costs) {
  const std::ptrdiff_t width = network.strategies(edge.to);
  const double* cell = edge.cost.data();
  if (edge.from == node) {
    for (double& cost : costs) cost += cell[other_strategy], cell += width;
    return;
  }
  cell += other_strategy * width;
  for (double& cost : costs) cost += *cell++;
}

double network_cost(const SelectionNetwork& network, const std::vector<int>& choice) {
  double cost = network.constant;
  for (std::size_t i = 0; i < network.nodes.size(); ++i) cost += network.nodes[i].cost[choice[i]];
  for (const auto& edge : network.edges) {
    cost += edge.cost[static_cast<std::size_t>(choice[edge.from]) * network.strategies(edge.to) +
                      choice[edge.to]];
  }
  return cost;
}

std::vector<std::int64_t> free_memory(const SelectionNetwork& network, const std::vector<int>& choice) {
  std::vector<std::int64_t> step(network.capacity.size() + 1, 0);
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    for (const auto& piece : network.nodes[i].pieces) {
      step[piece.begin] += piece.memory[choice[i]];
      step[piece.end] -= piece.memory[choice[i]];
    }
  }
  std::vector<std::int64_t> free = network.capacity;
  std::int64_t used = 0;
  for (std::size_t t = 0; t < free.size(); ++t) free[t] -= (used += step[t]);
  return free;
}

bool fits(const SelectionNetwork& network, const std::vector<int>& choice) {
  const auto free = free_memory(network, choice);
  return std::all_of(free.begin(), free.end(), [](std::int64_t bytes) { return bytes >= 0; });
}

std::vector<std::vector<double>> priced_costs(const SelectionNetwork& network,
                                              const std::vector<double>& price) {
  std::vector<double> before(price.size() + 1, 0);  // sum of the prices of earlier time points
  std::partial_sum(price.begin(), price.end(), before.begin() + 1);
  std::vector<std::vector<double>> costs;
  costs.reserve(network.nodes.size());
  for (const auto& node : network.nodes) {
    auto& cost = costs.emplace_back(node.cost);
    for (const auto& piece : node.pieces) {
      const double rate = before[piece.end] - before[piece.begin];
      for (std::size_t a = 0; a < cost.size(); ++a) cost[a] += rate * static_cast<double>(piece.memory[a]);
    }
  }
  return costs;
}

}  // namespace alpa
