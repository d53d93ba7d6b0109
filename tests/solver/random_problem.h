#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "libalpa/solver/selection/selection_network.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {

/// What to draw a small problem from. Costs are small integers, so that sums are exact and ties are common.
struct ProblemShape {
  int nodes = 6, strategies = 3, edges = 8, times = 6;
  double forbidden = 0;  ///< share of infinite entries, in nodes (a quarter of it) and edges
  double memory =
      -1;  ///< limit between the least (0) and the largest (1) possible sum of all sizes; negative: none
};

inline SelectionProblem random_problem(std::uint32_t seed, const ProblemShape& shape) {
  std::mt19937 draw(seed);
  const auto below = [&](int count) { return static_cast<int>(draw() % static_cast<std::uint32_t>(count)); };
  const auto cost = [&](double forbidden) {
    return below(1000) < 1000 * forbidden ? std::numeric_limits<double>::infinity() : below(30);
  };
  SelectionProblem problem;
  std::int64_t least = 0, most = 0;
  for (int i = 0; i < shape.nodes; ++i) {
    auto& node = problem.nodes.emplace_back();
    const int strategies = 1 + below(shape.strategies);
    auto& [begin, end, memory] = node.memory.emplace_back();
    for (int a = 0; a < strategies; ++a) {
      node.cost.push_back(cost(shape.forbidden / 4));
      memory.push_back(below(20));
    }
    begin = below(shape.times);
    end = begin + below(shape.times - begin + 1);  // empty now and then
    if (begin == end) continue;
    std::int64_t low = memory[0], high = low;
    for (auto bytes : memory) low = std::min(low, bytes), high = std::max(high, bytes);
    least += low;
    most += high;
  }
  for (int e = 0; e < shape.edges && shape.nodes > 1; ++e) {  // parallel now and then
    auto& edge = problem.edges.emplace_back();
    edge.from = below(shape.nodes);
    edge.to = (edge.from + 1 + below(shape.nodes - 1)) % shape.nodes;
    const std::size_t cells = problem.nodes[edge.from].cost.size() * problem.nodes[edge.to].cost.size();
    for (std::size_t k = 0; k < cells; ++k) edge.cost.push_back(cost(shape.forbidden));
  }
  if (shape.memory >= 0) {
    problem.memory_limit =
        least / 2 + static_cast<std::int64_t>(shape.memory * static_cast<double>(most - least / 2));
  }
  return problem;
}

/// Least cost over all choices that fit, by looking at each; nothing when none does. `limit` negative: none.
struct Exhaustive {
  std::optional<double> cost;
  std::int64_t least_peak =
      std::numeric_limits<std::int64_t>::max();  ///< over choices of finite cost, limit or not
};

inline Exhaustive exhaustive_search(const SelectionProblem& problem) {
  Exhaustive best;
  std::vector<int> choice(problem.nodes.size(), 0);
  while (true) {
    const double cost = selection_cost(problem, choice);
    if (cost < std::numeric_limits<double>::infinity()) {
      const auto peak = selection_peak_memory(problem, choice);
      best.least_peak = std::min(best.least_peak, peak);
      if ((problem.memory_limit < 0 || peak <= problem.memory_limit) && (!best.cost || cost < *best.cost))
        best.cost = cost;
    }
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == static_cast<int>(problem.nodes[i].cost.size()))
      choice[i++] = 0;
    if (i == choice.size()) return best;
  }
}

inline std::vector<std::vector<double>> node_costs(const SelectionNetwork& network) {
  std::vector<std::vector<double>> costs;
  for (const auto& node : network.nodes) costs.push_back(node.cost);
  return costs;
}

}  // namespace alpa
