#include "libalpa/solver/selection/neighbourhood_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libalpa/base/philox.h"
#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/local_search.h"

namespace alpa {
namespace {

// Draws that depend on nothing but the seed, the number of the try and how many were drawn in it.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t number) : seed_(seed), number_(number) {}

  double uniform() { return philox_uniform_at(seed_, number_, drawn_++); }
  int below(int count) { return std::min(count - 1, static_cast<int>(uniform() * count)); }

 private:
  std::uint64_t seed_, number_, drawn_ = 0;
};

class NeighbourhoodSearch {
 public:
  NeighbourhoodSearch(const SelectionNetwork& network, Incumbent& incumbent,
                      const NeighbourhoodOptions& options)
      : network_(network),
        incumbent_(incumbent),
        options_(options),
        incident_(incident_edges(network)),
        local_search_(network, incident_),
        paid_(priced_costs(network, options.price)),
        node_cost_(network.nodes.size()),
        is_member_(network.nodes.size(), 0) {
    for (std::size_t i = 0; i < paid_.size(); ++i) {
      for (std::size_t a = 0; a < paid_[i].size(); ++a) paid_[i][a] -= network.nodes[i].cost[a];
    }
    local_search_.start_from(incumbent.choice);
  }

  /// Returns the table entries looked at.
  double attempt(std::uint64_t number) {
    Dice dice(options_.seed, number);
    const auto region = dice.uniform() < 0.7 ? connected_region(dice) : crowded_region(dice);
    Elimination elimination(network_, incident_, region, {.table_cells = 1e4, .total_work = 3e5});
    const auto& members = elimination.members();
    if (members.empty()) return 0;
    double work = 0;
    for (int i : members) is_member_[i] = 1;
    const auto gather = [&](double scale) {
      for (int i : members) set_node_cost(i, scale);
    };
    // Prices below and above the ones that balance the whole: the best scale differs from region to region.
    double scale = network_.capacity.empty() ? 0 : std::exp2(4 * dice.uniform() - 3);
    constexpr int max_scales = 4;
    for (int k = 0; k < max_scales; ++k) {
      gather(scale);
      auto choice = local_search_.choice();
      elimination.minimise(node_cost_, choice);
      work += elimination.work();
      const Outcome outcome = take_over(members, choice);
      if (outcome == Outcome::taken || scale == 0) break;
      scale *= outcome == Outcome::too_large ? 2 : 0.5;
      if (outcome == Outcome::dearer && k > 0) break;
    }
    for (int i : members) is_member_[i] = 0;
    return work;
  }

 private:
  enum class Outcome { taken, too_large, dearer };

  void set_node_cost(int node, double scale) {
    auto& cost = node_cost_[node];
    cost = network_.nodes[node].cost;
    for (std::size_t a = 0; a < cost.size(); ++a) cost[a] += scale * paid_[node][a];
    for (int e : incident_[node]) {
      const auto& edge = network_.edges[e];
      const int other = other_end(edge, node);
      if (!is_member_[other]) add_edge_costs(network_, edge, node, local_search_.choice()[other], cost);
    }
  }

  // Of the members and the edges at them.
  double local_cost(const std::vector<int>& members) const {
    const auto& choice = local_search_.choice();
    double cost = 0;
    for (int i : members) {
      cost += network_.nodes[i].cost[choice[i]];
      for (int e : incident_[i]) {
        const auto& edge = network_.edges[e];
        if (is_member_[other_end(edge, i)] && edge.from != i) continue;
        cost += edge.cost[static_cast<std::size_t>(choice[edge.from]) * network_.strategies(edge.to) +
                          choice[edge.to]];
      }
    }
    return cost;
  }

  Outcome take_over(const std::vector<int>& members, const std::vector<int>& choice) {
    const double before = local_cost(members);
    std::vector<std::pair<int, int>> undo;
    for (int i : members) {
      if (choice[i] == local_search_.choice()[i]) continue;
      undo.emplace_back(i, local_search_.choice()[i]);
      local_search_.set(i, choice[i]);
    }
    if (undo.empty()) return Outcome::taken;
    const double change = local_cost(members) - before;
    const bool fits = local_search_.fits();
    const double noise = 1e-12 * std::abs(incumbent_.cost);
    if (fits && change <= noise) {
      if (change < -noise) {
        incumbent_.offer(local_search_.choice(), network_cost(network_, local_search_.choice()));
      }
      return Outcome::taken;
    }
    for (const auto& [node, strategy] : undo) local_search_.set(node, strategy);
    return fits ? Outcome::dearer : Outcome::too_large;
  }

  std::vector<int> connected_region(Dice& dice) {
    const int size = 4 << dice.below(5);
    std::vector<int> region{dice.below(static_cast<int>(network_.nodes.size()))};
    std::vector<int> seen = region;
    is_member_[region[0]] = 1;
    for (std::size_t head = 0; head < region.size() && std::ssize(region) < size; ++head) {
      for (int e : incident_[region[head]]) {
        const int other = other_end(network_.edges[e], region[head]);
        // Leaving some neighbours out makes regions of all shapes.
        if (is_member_[other] || std::ssize(region) >= size || dice.uniform() < 0.2) continue;
        is_member_[other] = 1;
        region.push_back(other);
      }
    }
    for (int i : region) is_member_[i] = 0;
    return region;
  }

  std::vector<int> crowded_region(Dice& dice) {
    if (network_.capacity.empty()) return connected_region(dice);
    // The fullest of a few time points.
    int time = dice.below(static_cast<int>(network_.capacity.size()));
    for (int k = 0; k < 3; ++k) {
      const int other = dice.below(static_cast<int>(network_.capacity.size()));
      if (local_search_.free()[other] < local_search_.free()[time]) time = other;
    }
    const int size = 4 << dice.below(4);
    std::vector<int> region;
    for (int i = 0; i < std::ssize(network_.nodes); ++i) {
      const auto& pieces = network_.nodes[i].pieces;
      const auto piece =
          std::partition_point(pieces.begin(), pieces.end(), [&](const auto& p) { return p.end <= time; });
      if (piece != pieces.end() && piece->begin <= time) region.push_back(i);
    }
    for (int k = 0; k < size && k < std::ssize(region); ++k) {
      std::swap(region[k], region[k + dice.below(static_cast<int>(region.size()) - k)]);
    }
    region.resize(std::min<std::size_t>(region.size(), size));
    return region;
  }

  const SelectionNetwork& network_;
  Incumbent& incumbent_;
  const NeighbourhoodOptions& options_;
  std::vector<std::vector<int>> incident_;
  LocalSearch local_search_;
  std::vector<std::vector<double>> paid_;       // price of each strategy's memory
  std::vector<std::vector<double>> node_cost_;  // of the members of the present region
  std::vector<char> is_member_;
};

}  // namespace

void search_neighbourhoods(const SelectionNetwork& network, Incumbent& incumbent,
                           const NeighbourhoodOptions& options, const Deadline& deadline) {
  NeighbourhoodSearch search(network, incumbent, options);
  constexpr double work_per_try = 1e4;  // of finding the region and its order, in table entries
  double work = 0;
  std::uint64_t number = 0;
  for (int futile = 0; futile < options.patience && work < static_cast<double>(options.work); ++futile) {
    if (incumbent.cost <= options.target || deadline.passed()) return;
    const double before = incumbent.cost;
    work += work_per_try + search.attempt(number++);
    if (incumbent.cost < before) futile = 0;
  }
}

}  // namespace alpa
