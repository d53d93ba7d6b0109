#include "libalpa/solver/selection/local_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace alpa {

LocalSearch::LocalSearch(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident)
    : network_(network), incident_(incident), all_nodes_(network.nodes.size()) {
  std::iota(all_nodes_.begin(), all_nodes_.end(), 0);
}

void LocalSearch::start_from(std::vector<int> choice) {
  choice_ = std::move(choice);
  free_ = free_memory(network_, choice_);
}

bool LocalSearch::fits() const {
  return std::all_of(free_.begin(), free_.end(), [](std::int64_t bytes) { return bytes >= 0; });
}

void LocalSearch::set(int node, int strategy) {
  for (const auto& piece : network_.nodes[node].pieces) {
    const std::int64_t gain = piece.memory[choice_[node]] - piece.memory[strategy];
    if (gain == 0) continue;
    for (int t = piece.begin; t < piece.end; ++t) free_[t] += gain;
  }
  choice_[node] = strategy;
}

std::span<const double> LocalSearch::strategy_costs(int node) {
  costs_ = network_.nodes[node].cost;
  for (int e : incident_[node]) {
    const auto& edge = network_.edges[e];
    add_edge_costs(network_, edge, node, choice_[other_end(edge, node)], costs_);
  }
  return costs_;
}

// Overload in bytes, summed over time, that goes when the node switches.
double LocalSearch::relief(int node, int strategy) const {
  double total = 0;
  for (const auto& piece : network_.nodes[node].pieces) {
    const std::int64_t gain = piece.memory[choice_[node]] - piece.memory[strategy];
    if (gain == 0) continue;
    for (int t = piece.begin; t < piece.end; ++t) {
      const std::int64_t before = std::min<std::int64_t>(0, free_[t]),
                         after = std::min<std::int64_t>(0, free_[t] + gain);
      total += static_cast<double>(after - before);
    }
  }
  return total;
}

// Switches that use less memory at `time`, the best first, by an estimate of their relief: bytes saved times
// overloaded points.
std::vector<LocalSearch::Switch> LocalSearch::promising_switches(int time, std::span<const int> nodes) {
  overloads_before_.assign(free_.size() + 1, 0);
  for (std::size_t t = 0; t < free_.size(); ++t)
    overloads_before_[t + 1] = overloads_before_[t] + (free_[t] < 0);
  std::vector<Switch> switches;
  for (int i : nodes) {
    const auto& pieces = network_.nodes[i].pieces;
    const auto now =
        std::partition_point(pieces.begin(), pieces.end(), [&](const auto& p) { return p.end <= time; });
    if (now == pieces.end() || now->begin > time || now->memory[choice_[i]] == 0) continue;
    const auto costs = strategy_costs(i);
    for (int a = 0; a < std::ssize(costs); ++a) {
      if (now->memory[a] >= now->memory[choice_[i]] || std::isinf(costs[a])) continue;
      double saved = 0;
      for (const auto& piece : pieces) {
        const int overloaded = overloads_before_[piece.end] - overloads_before_[piece.begin];
        saved += static_cast<double>(piece.memory[choice_[i]] - piece.memory[a]) * overloaded;
      }
      if (saved <= 0) continue;
      // A switch that gains on both sides is taken at its full gain.
      const double loss = costs[a] - costs[choice_[i]];
      switches.push_back({loss > 0 ? loss / saved : loss * saved, i, a});
    }
  }
  std::stable_sort(switches.begin(), switches.end(),
                   [](const Switch& a, const Switch& b) { return a.rate < b.rate; });
  return switches;
}

bool LocalSearch::repair(const Deadline& deadline) {
  return repair(deadline, all_nodes_, std::numeric_limits<int>::max());
}

bool LocalSearch::repair(const Deadline& deadline, std::span<const int> nodes, int most_switches) {
  for (int k = 0; k < most_switches && !deadline.passed(); ++k) {
    const auto worst = std::min_element(free_.begin(), free_.end());
    if (worst == free_.end() || *worst >= 0) return true;
    bool relieved = false;
    for (const Switch& next : promising_switches(static_cast<int>(worst - free_.begin()), nodes)) {
      if (relief(next.node, next.strategy) <= 0) continue;
      set(next.node, next.strategy);
      relieved = true;
      break;
    }
    if (!relieved) return false;
  }
  return fits();
}

void LocalSearch::improve() { improve(all_nodes_); }

void LocalSearch::improve(std::span<const int> nodes) {
  constexpr int max_rounds = 100;  // against endless loops on rounding; a handful is usual
  bool changed = true;
  for (int round = 0; round < max_rounds && changed; ++round) {
    changed = false;
    for (int i : nodes) {
      const auto costs = strategy_costs(i);
      const auto& pieces = network_.nodes[i].pieces;
      std::vector<std::int64_t> room;  // per piece: how much more it may hold
      int best = choice_[i];
      for (int a = 0; a < std::ssize(costs); ++a) {
        if (costs[a] >= costs[best]) continue;
        for (std::size_t k = room.size(); k < pieces.size(); ++k) {
          room.push_back(*std::min_element(free_.begin() + pieces[k].begin, free_.begin() + pieces[k].end));
        }
        bool fits = true;
        for (std::size_t k = 0; k < pieces.size() && fits; ++k) {
          const std::int64_t more = pieces[k].memory[a] - pieces[k].memory[choice_[i]];
          fits = more <= 0 || more <= room[k];
        }
        if (fits) best = a;
      }
      if (best == choice_[i]) continue;
      set(i, best);
      changed = true;
    }
  }
}

}  // namespace alpa
