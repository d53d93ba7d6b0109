#include "libalpa/solver/local_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace alpa {

LocalSearch::LocalSearch(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident)
    : network_(network), incident_(incident) {}

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

bool LocalSearch::repair() {
  while (true) {
    const auto worst = std::min_element(free_.begin(), free_.end());
    if (worst == free_.end() || *worst >= 0) return true;
    const int time = static_cast<int>(worst - free_.begin());
    int best_node = -1, best_strategy = -1;
    double best_rate = std::numeric_limits<double>::infinity();
    for (int i = 0; i < std::ssize(network_.nodes); ++i) {
      const auto& pieces = network_.nodes[i].pieces;
      const auto piece =
          std::partition_point(pieces.begin(), pieces.end(), [&](const auto& p) { return p.end <= time; });
      if (piece == pieces.end() || piece->begin > time || piece->memory[choice_[i]] == 0) continue;
      const auto costs = strategy_costs(i);
      for (int a = 0; a < std::ssize(costs); ++a) {
        if (piece->memory[a] >= piece->memory[choice_[i]] || std::isinf(costs[a])) continue;
        const double gain = relief(i, a);
        if (gain <= 0) continue;
        // A switch that gains on both sides is taken at its full gain.
        const double loss = costs[a] - costs[choice_[i]];
        const double rate = loss > 0 ? loss / gain : loss * gain;
        if (rate < best_rate) best_rate = rate, best_node = i, best_strategy = a;
      }
    }
    if (best_node < 0) return false;
    set(best_node, best_strategy);
  }
}

void LocalSearch::improve() {
  constexpr int max_rounds = 100;  // against endless loops on rounding; a handful is usual
  bool changed = true;
  for (int round = 0; round < max_rounds && changed; ++round) {
    changed = false;
    for (int i = 0; i < std::ssize(network_.nodes); ++i) {
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
