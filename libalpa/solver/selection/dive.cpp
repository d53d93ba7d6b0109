#include "libalpa/solver/selection/dive.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace alpa {
namespace {

constexpr int first_sweeps = 4, sweeps_between = 2, fixing_steps = 10;

}  // namespace

Dive::Dive(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident,
           const MessagePassing& messages, const std::vector<double>& price)
    : network_(network),
      messages_(messages),
      view_(network, incident, price, NeighbourhoodView::Memory::paid),
      cost_(priced_costs(network, price)) {
  double bound = 0;
  for (int k = 0; k < first_sweeps; ++k) bound = messages_.sweep(cost_);
  moved_ = messages_.moved();
  penalty_ = 0.05 * std::abs(bound) + 1e-300;
}

double Dive::work() const {
  return 4.0 * static_cast<double>(network_.edge_cells()) * (fixing_steps * sweeps_between + 2);
}

Dive::Found Dive::descend(std::vector<Ban> bans, double work, std::uint64_t seed,
                          const Deadline& deadline) const {
  MessagePassing messages = messages_;
  auto cost = cost_;
  for (const auto& [node, strategy] : bans) cost[node][strategy] += penalty_;
  for (int k = 0; k < sweeps_between; ++k) messages.sweep(cost);
  std::vector<int> open(network_.nodes.size());
  std::iota(open.begin(), open.end(), 0);
  const std::size_t at_once = open.size() / fixing_steps + 1;
  while (!open.empty() && !deadline.passed()) {
    const auto& margin = messages.margin();
    std::stable_sort(open.begin(), open.end(), [&](int i, int j) { return margin[i] < margin[j]; });
    for (std::size_t k = 0; k < at_once && !open.empty(); ++k, open.pop_back()) {
      const int node = open.back(), fixed = messages.choice()[node];
      for (int a = 0; a < network_.strategies(node); ++a)
        if (a != fixed) cost[node][a] += penalty_;
    }
    for (int k = 0; k < sweeps_between; ++k) messages.sweep(cost);
  }
  NeighbourhoodLane lane(view_, seed);
  lane.start_from(messages.choice());
  lane.walk(work, deadline);
  return {lane.choice(), lane.objective(), std::move(bans)};
}

std::vector<int> Dive::edges_with_most_excess(const std::vector<int>& choice, int count) const {
  std::vector<std::pair<double, int>> excess;
  for (int e = 0; e < std::ssize(network_.edges); ++e) {
    const auto& edge = network_.edges[e];
    const int a = choice[edge.from], b = choice[edge.to];
    const double cost = edge.cost[static_cast<std::size_t>(a) * network_.strategies(edge.to) + b];
    excess.emplace_back(moved_[e].from[a] + moved_[e].to[b] - cost, e);
  }
  count = std::min<int>(count, static_cast<int>(excess.size()));
  std::partial_sort(excess.begin(), excess.begin() + count, excess.end());
  std::vector<int> edges;
  for (int k = 0; k < count; ++k) edges.push_back(excess[k].second);
  return edges;
}

Dive::Found Dive::run(std::vector<Ban> bans, int most_bans, double work, std::uint64_t seed,
                      const Deadline& deadline) const {
  Found best = descend(std::move(bans), work, seed, deadline);
  constexpr int edges_tried = 2;
  for (int k = 0; k < most_bans; ++k) {
    Found next = best;
    std::vector<int> tried;
    for (int e : edges_with_most_excess(best.choice, edges_tried))
      for (int node : {network_.edges[e].from, network_.edges[e].to}) {
        if (deadline.passed()) return next;
        if (std::find(tried.begin(), tried.end(), node) != tried.end()) continue;
        tried.push_back(node);
        auto more = best.bans;
        more.emplace_back(node, best.choice[node]);
        Found found = descend(std::move(more), work, seed, deadline);
        if (found.cost < next.cost) next = std::move(found);
      }
    if (next.cost >= best.cost) break;
    best = std::move(next);
  }
  return best;
}

}  // namespace alpa
