#include "libalpa/solver/selection/prices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/local_search.h"
#include "libalpa/solver/selection/message_passing.h"

namespace alpa {
namespace {

// Exact tables are worth it up to this much work per step, compared with edge entries that a sweep of
// messages looks at.
constexpr double max_exact_work = 2e7;

std::vector<int> all_nodes(const SelectionNetwork& network) {
  std::vector<int> nodes(network.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

class PriceSearch {
 public:
  PriceSearch(const SelectionNetwork& network, Incumbent& incumbent, const PriceOptions& options,
              const Deadline& deadline)
      : network_(network),
        incumbent_(incumbent),
        options_(options),
        deadline_(deadline),
        incident_(incident_edges(network)),
        elimination_(network, incident_, all_nodes(network),
                     {.table_cells = 1e6,
                      .total_work = options.most_sweeps > 0 ? 0 : max_exact_work,
                      .all_or_none = true}),
        local_search_(network, incident_),
        choice_(network.nodes.size(), 0) {
    exact_ = elimination_.hubs().empty();
    if (!exact_) messages_.emplace(network, incident_);
    const double work = exact_ ? elimination_.work() : 4.0 * static_cast<double>(network.edge_cells());
    iterations_ =
        static_cast<int>(std::clamp(static_cast<double>(options.work) / std::max(work, 1e4), 40.0, 400.0));
    if (options.most_sweeps > 0) iterations_ = options.most_sweeps;
    for (auto bytes : network.capacity) unit_ = std::max(unit_, static_cast<double>(bytes));
    best_.bound = -infinity;
    best_.price.assign(network.capacity.size(), 0);
  }

  PricedBound run() {
    std::vector<double> price(network_.capacity.size(), 0);
    evaluate(price);
    if (!network_.capacity.empty()) {
      if (!options_.start.empty()) evaluate(options_.start);
      if (!done() && !incumbent_.exists()) raise_uniform_price();
      descend();
    } else {
      for (int k = 0; k < iterations_ && !exact_ && !done(); ++k) evaluate(price);
    }
    // Within the gap nothing is left to be reduced.
    if (!done() && options_.most_sweeps == 0) find_reduced_costs();
    return std::move(best_);
  }

 private:
  bool done() const {
    return deadline_.passed() ||
           (incumbent_.exists() && incumbent_.cost - best_.bound <= options_.gap * std::abs(incumbent_.cost));
  }

  // Sets choice_ to the (nearly) cheapest one at these prices and returns the bound they prove.
  double evaluate(const std::vector<double>& price) {
    const auto costs = priced_costs(network_, price);
    double bound = network_.constant;
    if (exact_) {
      bound += elimination_.minimise(costs, choice_);
    } else {
      bound += messages_->sweep(costs);
      choice_ = messages_->choice();
    }
    for (std::size_t t = 0; t < price.size(); ++t)
      bound -= price[t] * static_cast<double>(network_.capacity[t]);
    if (bound > best_.bound) best_.bound = bound, best_.price = price, best_.choice = choice_;
    local_search_.start_from(choice_);
    free_ = local_search_.free();
    if (evaluations_++ % repair_every_ != 0) return bound;
    if (std::isfinite(network_cost(network_, choice_)) && local_search_.repair(deadline_)) {
      local_search_.improve();
      incumbent_.offer(local_search_.choice(), network_cost(network_, local_search_.choice()));
    }
    return bound;
  }

  // One price for all time, raised until something fits: a first incumbent and the scale of the prices.
  void raise_uniform_price() {
    double spread = 0;
    for (const auto& node : network_.nodes) {
      const auto [least, most] = std::minmax_element(node.cost.begin(), node.cost.end());
      spread += *most - *least;
    }
    for (const auto& edge : network_.edges) {
      double most = 0;
      for (double cost : edge.cost) most = std::isinf(cost) ? most : std::max(most, cost);
      spread += most;
    }
    const double points = static_cast<double>(network_.capacity.size());
    double price = 1e-6 * std::max(spread, 1e-300) / unit_ / points;
    constexpr int max_steps = 30;
    constexpr double factor = 3;
    for (int k = 0; k < max_steps && !done(); ++k, price *= factor) {
      evaluate(std::vector<double>(network_.capacity.size(), price));
      const bool over = std::any_of(free_.begin(), free_.end(), [](auto bytes) { return bytes < 0; });
      if (!over && incumbent_.exists()) return;
    }
  }

  // Polyak's subgradient steps towards the incumbent's cost, in the memory's own unit.
  void descend() {
    std::vector<double> price = best_.price, direction(price.size(), 0);
    double pace = 1;
    int stalled = 0;
    constexpr double keep =
        0.7;  // of the last direction: one choice's overload says little where choices jump
    for (int k = 0; k < iterations_ && !done() && pace > 1e-4; ++k) {
      const double before = best_.bound;
      const double bound = evaluate(price);
      stalled = best_.bound > before + 1e-9 * std::abs(before) ? 0 : stalled + 1;
      constexpr int patience = 12;
      if (stalled >= patience) {
        pace /= 2;
        stalled = 0;
        price = best_.price;
        std::fill(direction.begin(), direction.end(), 0);
        continue;
      }
      double square = 0;
      for (std::size_t t = 0; t < price.size(); ++t) {
        direction[t] = keep * direction[t] - (1 - keep) * static_cast<double>(free_[t]) / unit_;
        if (price[t] > 0 || direction[t] > 0) square += direction[t] * direction[t];
      }
      if (square == 0) return;
      const double target =
          incumbent_.exists() ? incumbent_.cost : best_.bound + 0.1 * std::max(std::abs(best_.bound), 1e-300);
      const double step = pace * (target - bound) / square / unit_;
      for (std::size_t t = 0; t < price.size(); ++t) price[t] = std::max(0.0, price[t] + step * direction[t]);
    }
  }

  void find_reduced_costs() {
    const auto costs = priced_costs(network_, best_.price);
    double constant = network_.constant;
    for (std::size_t t = 0; t < best_.price.size(); ++t) {
      constant -= best_.price[t] * static_cast<double>(network_.capacity[t]);
    }
    if (exact_) {
      best_.reduction_bound = constant + elimination_.minimise(costs, choice_);
      best_.reduced_costs = elimination_.min_marginals(costs);
      for (auto& marginals : best_.reduced_costs) {
        for (double& marginal : marginals) marginal += constant - best_.reduction_bound;
      }
      return;
    }
    constexpr int sweeps = 20;
    for (int k = 0; k < sweeps && (k == 0 || !deadline_.passed()); ++k) {
      best_.reduction_bound = constant + messages_->sweep(costs);
      best_.bound = std::max(best_.bound, best_.reduction_bound);
    }
    best_.reduced_costs = messages_->reduced_costs();
  }

  const SelectionNetwork& network_;
  Incumbent& incumbent_;
  const PriceOptions& options_;
  const Deadline& deadline_;
  std::vector<std::vector<int>> incident_;
  Elimination elimination_;
  std::optional<MessagePassing> messages_;
  LocalSearch local_search_;
  std::vector<int> choice_;
  std::vector<std::int64_t> free_;  // memory that choice_ leaves per time point
  PricedBound best_;
  bool exact_ = false;
  int iterations_ = 0, evaluations_ = 0, repair_every_ = 1;
  double unit_ = 1;  // bytes
};

}  // namespace

PricedBound find_prices(const SelectionNetwork& network, Incumbent& incumbent, const PriceOptions& options,
                        const Deadline& deadline) {
  return PriceSearch(network, incumbent, options, deadline).run();
}

}  // namespace alpa
