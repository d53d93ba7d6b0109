#include "libalpa/solver/selection/price_ascent.h"

#include <algorithm>
#include <cmath>

#include "libalpa/base/infinity.h"

namespace alpa {

PriceAscent::PriceAscent(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident,
                         std::vector<double> start)
    : network_(network),
      messages_(network, incident),
      price_(network.capacity.size(), 0),
      overload_(network.capacity.size(), 0),
      bound_(-infinity) {
  double largest = 1;
  for (auto bytes : network.capacity) largest = std::max(largest, static_cast<double>(bytes));
  for (auto bytes : network.capacity) unit_.push_back(std::max(static_cast<double>(bytes), 1e-3 * largest));
  constexpr int first_sweeps = 3;
  for (int k = 0; k < first_sweeps; ++k) evaluate(price_);
  if (start.empty()) {
    find_first_prices();
  } else {
    next_price_ = std::move(start);
  }
}

double PriceAscent::step_work() const { return 4.0 * static_cast<double>(network_.edge_cells()); }

double PriceAscent::evaluate(const std::vector<double>& price) {
  price_ = price;
  double bound = network_.constant + messages_.sweep(priced_costs(network_, price));
  for (std::size_t t = 0; t < price.size(); ++t)
    bound -= price[t] * static_cast<double>(network_.capacity[t]);
  if (bound > bound_) bound_ = bound, best_price_ = price;
  return bound;
}

// One price for all times: the best of a geometric row.
void PriceAscent::find_first_prices() {
  next_price_ = price_;
  if (price_.empty()) return;
  double spread = 0, largest = 1;
  for (const auto& node : network_.nodes) spread += *std::max_element(node.cost.begin(), node.cost.end());
  for (const auto& edge : network_.edges) {
    double most = 0;
    for (double cost : edge.cost) most = std::isinf(cost) ? most : std::max(most, cost);
    spread += most;
  }
  for (double unit : unit_) largest = std::max(largest, unit);
  double price = 1e-6 * std::max(spread, 1e-300) / largest / static_cast<double>(price_.size());
  constexpr int most_steps = 30, most_worse = 4;
  double best = price;
  for (int k = 0, worse = 0; k < most_steps && worse < most_worse; ++k, ++worse, price *= 3) {
    const double before = bound_;
    evaluate(std::vector<double>(price_.size(), price));
    if (bound_ > before) best = price, worse = 0;
  }
  next_price_.assign(price_.size(), best);
}

void PriceAscent::step() {
  const double before = bound_;
  evaluate(next_price_);
  constexpr int patience = 10;
  constexpr double keep = 0.9, least_gain = 1e-7;
  stalled_ = bound_ > before + least_gain * std::abs(before) ? 0 : stalled_ + 1;
  const auto free = free_memory(network_, messages_.choice());
  for (std::size_t t = 0; t < free.size(); ++t) {
    const double overload = std::clamp(-static_cast<double>(free[t]) / unit_[t], -1.0, 1.0);
    overload_[t] = keep * overload_[t] + (1 - keep) * overload;
  }
  if (stalled_ >= patience) {
    pace_ = std::max(0.7 * pace_, least_pace_);
    stalled_ = 0;
    if (least_pace_ == 0) next_price_ = best_price_;
  }
  for (std::size_t t = 0; t < free.size(); ++t) next_price_[t] *= std::exp(pace_ * overload_[t]);
}

Certificate PriceAscent::certificate(const Deadline& deadline) {
  double last = -infinity;
  for (int k = 0; k < kCertificateSweeps && !(k > 0 && deadline.passed()); ++k) {
    const double bound = evaluate(std::vector<double>(best_price_));
    if (bound - last < 1e-7 * std::abs(bound)) break;
    last = bound;
  }
  return certify(network_, {price_, messages_.moved()});
}

}  // namespace alpa
