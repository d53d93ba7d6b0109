#include "libalpa/solver/selection/message_passing.h"

#include <algorithm>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/base/instruction_set.h"

namespace alpa {
namespace {

// least[b] = min over a of cost[a][b] - moved[a]
void column_minima(const std::vector<double>& cost, const std::vector<double>& moved,
                   std::vector<double>& least) {
  const std::ptrdiff_t width = std::ssize(least);
  run_vectorized(best_instruction_set(), 0, std::ssize(moved), [&](std::int64_t begin, std::int64_t end) {
    const double* __restrict row = cost.data();
    double* __restrict low = least.data();
    std::fill(low, low + width, infinity);
    for (std::int64_t a = begin; a < end; ++a, row += width) {
      const double offset = moved[a];
      for (std::ptrdiff_t b = 0; b < width; ++b) low[b] = std::min(low[b], row[b] - offset);
    }
  });
}

}  // namespace

MessagePassing::MessagePassing(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident)
    : network_(network),
      incident_(incident),
      edges_(network.edges.size()),
      choice_(network.nodes.size(), 0),
      margin_(network.nodes.size(), 0) {
  auto transposed = std::make_shared<std::vector<std::vector<double>>>(network.edges.size());
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const auto& edge = network.edges[e];
    const std::size_t rows = network.strategies(edge.from), columns = network.strategies(edge.to);
    edges_[e].to_from.assign(rows, 0);
    edges_[e].to_to.assign(columns, 0);
    auto& by_to = (*transposed)[e];
    by_to.resize(edge.cost.size());
    for (std::size_t a = 0; a < rows; ++a) {
      for (std::size_t b = 0; b < columns; ++b) by_to[b * rows + a] = edge.cost[a * columns + b];
    }
  }
  transposed_ = std::move(transposed);
}

void MessagePassing::collect(int e, int node) {
  Edge& edge = edges_[e];
  const bool is_to = network_.edges[e].to == node;
  auto& moved = is_to ? edge.to_to : edge.to_from;
  least_.resize(moved.size());
  column_minima(is_to ? network_.edges[e].cost : (*transposed_)[e], is_to ? edge.to_from : edge.to_to,
                least_);
  for (std::size_t a = 0; a < moved.size(); ++a) {
    belief_[node][a] += least_[a] - moved[a];
    moved[a] = least_[a];
  }
}

void MessagePassing::hand_out(int e, int node, double share) {
  auto& moved = network_.edges[e].to == node ? edges_[e].to_to : edges_[e].to_from;
  for (std::size_t a = 0; a < moved.size(); ++a) moved[a] -= share * belief_[node][a];
}

void MessagePassing::decode(int node, const std::vector<double>& own_cost) {
  least_ = own_cost;
  for (int e : incident_[node]) {
    const auto& edge = network_.edges[e];
    const int other = other_end(edge, node);
    if (other < node) {
      add_edge_costs(network_, edge, node, choice_[other], least_);
      continue;
    }
    const auto& moved = edge.to == node ? edges_[e].to_to : edges_[e].to_from;
    for (std::size_t a = 0; a < least_.size(); ++a) least_[a] += moved[a];
  }
  const auto best = std::min_element(least_.begin(), least_.end());
  choice_[node] = static_cast<int>(best - least_.begin());
  const double least = std::exchange(*best, infinity);
  margin_[node] = *std::min_element(least_.begin(), least_.end()) - least;
}

void MessagePassing::pass(bool forward) {
  const int count = static_cast<int>(network_.nodes.size());
  for (int k = 0; k < count; ++k) {
    const int node = forward ? k : count - 1 - k;
    const auto is_behind = [&](int e) { return (other_end(network_.edges[e], node) < node) == forward; };
    int behind = 0;
    for (int e : incident_[node]) {
      if (!is_behind(e)) continue;
      collect(e, node);
      ++behind;
    }
    const int ahead = static_cast<int>(incident_[node].size()) - behind;
    if (ahead == 0) continue;
    const double share = 1.0 / std::max(ahead, behind);
    for (int e : incident_[node]) {
      if (!is_behind(e)) hand_out(e, node, share);
    }
    for (double& belief : belief_[node]) belief *= 1 - share * ahead;
  }
}

double MessagePassing::sweep(const std::vector<std::vector<double>>& node_cost) {
  belief_ = node_cost;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const auto& edge = network_.edges[e];
    for (std::size_t a = 0; a < edges_[e].to_from.size(); ++a) belief_[edge.from][a] += edges_[e].to_from[a];
    for (std::size_t b = 0; b < edges_[e].to_to.size(); ++b) belief_[edge.to][b] += edges_[e].to_to[b];
  }
  pass(false);
  for (int i = 0; i < std::ssize(choice_); ++i) decode(i, node_cost[i]);
  pass(true);
  double bound = 0;  // all edges were collected at their later end, so their minima are 0
  for (const auto& belief : belief_) bound += *std::min_element(belief.begin(), belief.end());
  return bound;
}

std::vector<DualSolution::Moved> MessagePassing::moved() const {
  std::vector<DualSolution::Moved> moved;
  for (const Edge& edge : edges_) moved.push_back({edge.to_from, edge.to_to});
  return moved;
}

std::vector<std::vector<double>> MessagePassing::reduced_costs() const {
  auto result = belief_;
  std::vector<double> least;
  for (auto& costs : result) {
    const double minimum = *std::min_element(costs.begin(), costs.end());
    for (double& cost : costs) cost -= minimum;
  }
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const auto& edge = network_.edges[e];
    const bool from_is_first = edge.from < edge.to;
    const auto& moved = from_is_first ? edges_[e].to_from : edges_[e].to_to;
    least.resize(moved.size());
    column_minima(from_is_first ? (*transposed_)[e] : edge.cost,
                  from_is_first ? edges_[e].to_to : edges_[e].to_from, least);
    auto& costs = result[from_is_first ? edge.from : edge.to];
    for (std::size_t a = 0; a < costs.size(); ++a) costs[a] += std::max(0.0, least[a] - moved[a]);
  }
  return result;
}

}  // namespace alpa
