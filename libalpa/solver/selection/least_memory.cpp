#include "libalpa/solver/selection/least_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/message_passing.h"
#include "libalpa/solver/selection/presolve.h"

namespace alpa {
namespace {

// The least of the memory-priced costs of a network, or a bound on it.
class LeanestChoice {
 public:
  explicit LeanestChoice(const SelectionNetwork& network)
      : network_(network),
        incident_(incident_edges(network)),
        elimination_(network, incident_, nodes_of(network), {.table_cells = 1e5, .total_work = 5e6}),
        choice_(network.nodes.size(), 0) {
    if (!elimination_.hubs().empty()) messages_.emplace(network, incident_);
  }

  double minimise(const std::vector<double>& price) {
    const auto costs = priced_costs(network_, price);
    if (!messages_) return elimination_.minimise(costs, choice_);
    double bound = 0;
    constexpr int sweeps = 3;
    for (int k = 0; k < sweeps; ++k) bound = messages_->sweep(costs);
    choice_ = messages_->choice();
    return bound;
  }

  const std::vector<int>& choice() const { return choice_; }

 private:
  static std::vector<int> nodes_of(const SelectionNetwork& network) {
    std::vector<int> nodes(network.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
  }

  const SelectionNetwork& network_;
  std::vector<std::vector<int>> incident_;
  Elimination elimination_;
  std::optional<MessagePassing> messages_;
  std::vector<int> choice_;
};

// Largest shortfall of capacity, weighted over time, that is proven: what any choice exceeds the capacities
// by.
double proven_excess(const SelectionNetwork& network) {
  const std::size_t points = network.capacity.size();
  LeanestChoice leanest(network);
  std::vector<double> score(points, 0), weight(points, 1.0 / static_cast<double>(points));
  double best = -static_cast<double>(*std::max_element(network.capacity.begin(), network.capacity.end()));
  constexpr int steps = 60;
  for (int k = 0; k < steps; ++k) {
    double excess = leanest.minimise(weight);
    for (std::size_t t = 0; t < points; ++t) excess -= weight[t] * static_cast<double>(network.capacity[t]);
    best = std::max(best, excess);

    const auto free = free_memory(network, leanest.choice());
    double largest = 1;
    for (auto bytes : free) largest = std::max(largest, std::abs(static_cast<double>(bytes)));
    for (std::size_t t = 0; t < points; ++t) score[t] -= static_cast<double>(free[t]) / largest;
    const double top = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (std::size_t t = 0; t < points; ++t) sum += weight[t] = std::exp(score[t] - top);
    for (double& w : weight) w /= sum;
  }
  return best;
}

}  // namespace

std::int64_t least_peak_memory(const SelectionNetwork& network, std::int64_t limit) {
  SelectionNetwork costless = network;
  for (auto& node : costless.nodes) {
    for (double& cost : node.cost) cost = std::isinf(cost) ? cost : 0;
  }
  for (auto& edge : costless.edges) {
    for (double& cost : edge.cost) cost = std::isinf(cost) ? cost : 0;
  }
  const ReducedNetwork reduced = presolve(costless, CapacityMeaning::may_be_exceeded);
  if (reduced.verdict != ReducedNetwork::Verdict::open || reduced.network.capacity.empty()) return 0;
  const auto& capacity = reduced.network.capacity;
  // What nodes hold at least is gone from the capacities, so that a negative one is an excess that is
  // certain.
  const std::int64_t certain = limit - *std::min_element(capacity.begin(), capacity.end());
  if (reduced.network.nodes.empty()) return certain;
  // Rounded down: a fraction of a byte may be rounding.
  const double excess = proven_excess(reduced.network);
  return std::max(
      {std::int64_t{0}, certain, limit + static_cast<std::int64_t>(std::floor(excess * (1 - 1e-9)))});
}

}  // namespace alpa
