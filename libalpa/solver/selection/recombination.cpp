#include "libalpa/solver/selection/recombination.h"

#include <algorithm>

#include "libalpa/solver/selection/neighbourhood_lanes.h"
#include "libalpa/solver/selection/presolve.h"

namespace alpa {
namespace {

// The strategies of a node that some choice has, ascending.
std::vector<std::vector<int>> strategies_in(const std::vector<std::vector<int>>& choices) {
  std::vector<std::vector<int>> kept(choices[0].size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (const auto& choice : choices) kept[i].push_back(choice[i]);
    std::sort(kept[i].begin(), kept[i].end());
    kept[i].erase(std::unique(kept[i].begin(), kept[i].end()), kept[i].end());
  }
  return kept;
}

SelectionNetwork restricted(const SelectionNetwork& network, const std::vector<std::vector<int>>& kept) {
  SelectionNetwork small;
  small.capacity = network.capacity;
  small.constant = network.constant;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto& node = network.nodes[i];
    auto& copy = small.nodes.emplace_back();
    for (int a : kept[i]) copy.cost.push_back(node.cost[a]);
    for (const auto& piece : node.pieces) {
      auto& part = copy.pieces.emplace_back();
      part.begin = piece.begin, part.end = piece.end;
      for (int a : kept[i]) part.memory.push_back(piece.memory[a]);
    }
  }
  for (const auto& edge : network.edges) {
    auto& copy = small.edges.emplace_back();
    copy.from = edge.from, copy.to = edge.to;
    const std::size_t columns = network.strategies(edge.to);
    for (int a : kept[edge.from])
      for (int b : kept[edge.to]) copy.cost.push_back(edge.cost[a * columns + b]);
  }
  return small;
}

}  // namespace

void recombine(const SelectionNetwork& network, const std::vector<std::vector<int>>& choices,
               Incumbent& incumbent, const RecombinationOptions& options, const Deadline& deadline) {
  const auto kept = strategies_in(choices);
  const ReducedNetwork reduced = presolve(restricted(network, kept));
  if (reduced.verdict != ReducedNetwork::Verdict::open) return;
  const auto offer = [&](const std::vector<int>& small) {
    auto choice = reduced.lifting.lift(small);
    for (std::size_t i = 0; i < choice.size(); ++i) choice[i] = kept[i][choice[i]];
    incumbent.offer(choice, network_cost(network, choice));
  };
  if (reduced.network.nodes.empty()) return offer({});
  std::vector<int> start = choices[0];
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i] = static_cast<int>(std::lower_bound(kept[i].begin(), kept[i].end(), start[i]) - kept[i].begin());
  start = reduced.lifting.project(start);
  std::vector<double> price;
  for (int t : reduced.time_point) price.push_back(options.price[t]);
  const auto incident = incident_edges(reduced.network);
  const NeighbourhoodView view(reduced.network, incident, price);
  constexpr int lane_count = 4, rounds = 3;
  NeighbourhoodLanes lanes(view, lane_count, options.seed);
  lanes.start_from(start);
  Incumbent found;
  for (int k = 0; k < rounds && !deadline.passed(); ++k)
    lanes.walk(options.work / lane_count / rounds, options.threads, found, deadline);
  if (found.exists()) offer(found.choice);
}

}  // namespace alpa
