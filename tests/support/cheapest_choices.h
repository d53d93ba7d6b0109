#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa::testing_models {

/// The cheapest choices of a selection problem whatever their memory, by looking at all that can be among
/// them: the nodes choose one after another, and what the others cost at least then is known from tables over
/// the choices that matter to them (bucket elimination; Dechter, AIJ 1999).
class CheapestChoices {
 public:
  CheapestChoices(const SelectionProblem& problem, std::int64_t most_cells)
      : problem_(problem), of_node_(problem.nodes.size()), passing_(problem.nodes.size() + 1) {
    for (const SelectionProblem::Edge& edge : problem.edges) {
      const std::size_t columns = problem.nodes[edge.to].cost.size();
      Table table{{edge.from, edge.to}, {columns, 1}, &edge.cost};
      of_node_[std::max(edge.from, edge.to)].push_back(std::move(table));
    }
    for (int node = static_cast<int>(of_node_.size()) - 1; node >= 0 && has_room_; --node)
      eliminate(node, most_cells);
  }

  /// False: the tables would be too large.
  bool has_room() const { return has_room_; }

  /// As many as `most`, ascending by cost.
  std::vector<std::pair<double, std::vector<int>>> find(std::size_t most) const {
    std::vector<std::pair<double, std::vector<int>>> known;
    std::vector<int> choice(of_node_.size());
    const std::function<void(int, double)> extend = [&](int node, double cost) {
      double at_least = cost;
      for (const Table& table : passing_[node]) at_least += table.at(choice);
      if (at_least == infinity || (known.size() == most && at_least >= known.front().first)) return;
      if (node < static_cast<int>(choice.size())) {
        std::vector<std::pair<double, int>> next;  // the cheapest first
        for (const int c : all_choices(node)) {
          choice[node] = c;
          double least = own_cost(node, choice);
          for (const Table& table : passing_[node + 1]) least += table.at(choice);
          next.push_back({least, c});
        }
        std::ranges::sort(next);
        for (const auto& [least, c] : next) {
          choice[node] = c;
          extend(node + 1, cost + own_cost(node, choice));
        }
        return;
      }
      if (known.size() == most) {
        std::ranges::pop_heap(known);
        known.pop_back();
      }
      known.push_back({cost, choice});
      std::ranges::push_heap(known);
    };
    extend(0, 0);
    std::ranges::sort(known);
    return known;
  }

 private:
  /// A cost for all choices of some nodes: that of an edge, or the least of what later nodes cost.
  struct Table {
    std::vector<int> nodes;
    std::vector<std::size_t> strides;
    const std::vector<double>* of_edge = nullptr;
    std::vector<double> cost = {};

    double at(const std::vector<int>& choice) const {
      std::size_t place = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i) place += strides[i] * choice[nodes[i]];
      return (of_edge ? *of_edge : cost)[place];
    }
  };

  std::vector<int> all_choices(int node) const {
    std::vector<int> all(problem_.nodes[node].cost.size());
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = static_cast<int>(c);
    return all;
  }

  /// With its edges to earlier nodes.
  double own_cost(int node, const std::vector<int>& choice) const {
    double cost = problem_.nodes[node].cost[choice[node]];
    for (const Table& table : of_node_[node])
      if (table.of_edge) cost += table.at(choice);
    return cost;
  }

  /// A table over earlier nodes of the least that this one and later ones cost.
  void eliminate(int node, std::int64_t most_cells) {
    std::set<int> scope;
    for (const Table& table : of_node_[node]) scope.insert(table.nodes.begin(), table.nodes.end());
    scope.erase(node);
    Table least{{scope.begin(), scope.end()}, std::vector<std::size_t>(scope.size()), nullptr};
    std::size_t cells = 1;
    for (std::size_t i = scope.size(); i-- > 0;) {
      least.strides[i] = cells;
      cells *= problem_.nodes[least.nodes[i]].cost.size();
      if (cells > static_cast<std::size_t>(most_cells)) {
        has_room_ = false;
        return;
      }
    }
    std::vector<int> choice(of_node_.size());
    for (std::size_t cell = 0; cell < cells; ++cell) {
      for (std::size_t i = 0; i < scope.size(); ++i)
        choice[least.nodes[i]] =
            static_cast<int>(cell / least.strides[i] % problem_.nodes[least.nodes[i]].cost.size());
      double best = infinity;
      for (const int c : all_choices(node)) {
        choice[node] = c;
        double cost = problem_.nodes[node].cost[c];
        for (const Table& table : of_node_[node]) cost += table.at(choice);
        best = std::min(best, cost);
      }
      least.cost.push_back(best);
    }
    const int latest = scope.empty() ? -1 : *scope.rbegin();
    for (int n = latest + 1; n <= node; ++n) passing_[n].push_back(least);
    if (latest >= 0) of_node_[latest].push_back(std::move(least));
  }

  const SelectionProblem& problem_;
  std::vector<std::vector<Table>> of_node_;  ///< of which it is the latest
  std::vector<std::vector<Table>> passing_;  ///< [node] made from there on, of earlier nodes
  bool has_room_ = true;
};

}  // namespace alpa::testing_models
