#include "libalpa/solver/selection/dual_certificate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

__extension__ typedef __int128 Wide;

// Costs in units lie below this: sums of a million of them, and of what is moved, stay within 64 bits.
constexpr double most_units = 0x1p56;

// Beyond all costs in units, but so that a few add up within 64 bits. Stands for infinity.
constexpr std::int64_t forbidden_units = std::int64_t{1} << 60;

// Rounding down to units. Numbers between powers of two are exact in binary floating point when scaled.
class CostUnits {
 public:
  explicit CostUnits(const SelectionNetwork& network, const DualSolution& dual) {
    double largest = 1e-300;
    const auto look = [&](const std::vector<double>& values) {
      for (double v : values)
        if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    };
    look({network.constant});
    for (const auto& node : network.nodes) look(node.cost);
    for (const auto& edge : network.edges) look(edge.cost);
    for (const auto& moved : dual.moved) look(moved.from), look(moved.to);
    exponent_ = static_cast<int>(std::clamp(std::floor(std::log2(most_units / largest)) - 1, -900.0, 900.0));
    scale_ = std::ldexp(1, exponent_);
  }

  int exponent() const { return exponent_; }
  std::int64_t below(double value) const {
    if (value == infinity) return forbidden_units;
    return static_cast<std::int64_t>(std::floor(value * scale_));
  }
  // A number that is at most so many units.
  double number_below(Wide units) const {
    const double nearest = static_cast<double>(units);
    const double low = static_cast<Wide>(nearest) > units ? std::nextafter(nearest, -infinity) : nearest;
    return std::ldexp(low, -exponent_);
  }

 private:
  int exponent_ = 0;
  double scale_ = 1;
};

// Prices as integers: price * 2^exponent, rounded to nearest, summed over time.
class IntegerPrices {
 public:
  explicit IntegerPrices(const std::vector<double>& price) : sums_(price.size() + 1, 0) {
    double total = 1e-300;
    for (double p : price) total += p;
    exponent_ = static_cast<int>(std::clamp(std::floor(std::log2(0x1p60 / total)) - 1, -900.0, 1000.0));
    for (std::size_t t = 0; t < price.size(); ++t)
      sums_[t + 1] =
          sums_[t] + std::max<std::int64_t>(0, std::llround(std::ldexp(std::max(0.0, price[t]), exponent_)));
  }

  int exponent() const { return exponent_; }
  std::int64_t between(int begin, int end) const { return sums_[end] - sums_[begin]; }

 private:
  int exponent_ = 0;
  std::vector<std::int64_t> sums_;
};

// value * 2^shift, rounded down; saturates far beyond what costs are.
Wide shifted_down(Wide value, int shift) {
  if (shift >= 0) {
    for (; shift > 0 && value < (Wide{1} << 124) && value > -(Wide{1} << 124); --shift) value *= 2;
    return value;
  }
  return -shift >= 127 ? (value < 0 ? -1 : 0) : value >> -shift;
}

class DualEvaluation {
 public:
  DualEvaluation(const SelectionNetwork& network, const DualSolution& dual)
      : network_(network), dual_(dual), units_(network, dual), prices_(dual.price) {}

  Certificate run() {
    Certificate result;
    Wide bound = units_.below(network_.constant);
    std::vector<std::vector<Wide>> cost(network_.nodes.size());
    Wide paid = 0;
    for (std::size_t t = 0; t < network_.capacity.size(); ++t)
      paid += static_cast<Wide>(prices_.between(static_cast<int>(t), static_cast<int>(t) + 1)) *
              network_.capacity[t];
    bound -= in_units_rounded_up(paid);
    for (std::size_t i = 0; i < network_.nodes.size(); ++i) cost[i] = node_units(network_.nodes[i]);
    std::vector<std::vector<Wide>> rise(network_.nodes.size());
    for (std::size_t i = 0; i < rise.size(); ++i) rise[i].assign(cost[i].size(), 0);
    for (std::size_t e = 0; e < network_.edges.size(); ++e) bound += edge_minimum(e, cost, rise);
    for (std::size_t i = 0; i < cost.size(); ++i) {
      const Wide least = *std::min_element(cost[i].begin(), cost[i].end());
      bound += least;
      auto& reduced = result.reduced_costs.emplace_back();
      for (std::size_t a = 0; a < cost[i].size(); ++a) {
        const Wide more = cost[i][a] - least + rise[i][a];
        reduced.push_back(more >= forbidden_units / 2 ? infinity : units_.number_below(more));
      }
    }
    result.bound = units_.number_below(bound);
    return result;
  }

 private:
  Wide in_units(Wide priced) const { return shifted_down(priced, units_.exponent() - prices_.exponent()); }
  Wide in_units_rounded_up(Wide priced) const { return -in_units(-priced); }

  std::vector<Wide> node_units(const SelectionNetwork::Node& node) const {
    std::vector<Wide> result;
    for (std::size_t a = 0; a < node.cost.size(); ++a) {
      Wide paid = 0;
      for (const auto& piece : node.pieces)
        paid += static_cast<Wide>(prices_.between(piece.begin, piece.end)) * piece.memory[a];
      result.push_back(in_units(paid) + units_.below(node.cost[a]));
    }
    return result;
  }

  // The least entry of the edge after moving; adds what was moved to the ends, and what single strategies
  // raise the minimum by.
  std::int64_t edge_minimum(std::size_t e, std::vector<std::vector<Wide>>& cost,
                            std::vector<std::vector<Wide>>& rise) const {
    const auto& edge = network_.edges[e];
    const auto& moved = dual_.moved[e];
    std::vector<std::int64_t> to(moved.to.size()), least_to(moved.to.size(), forbidden_units);
    std::vector<std::int64_t> least_from(moved.from.size(), forbidden_units);
    for (std::size_t b = 0; b < to.size(); ++b) to[b] = units_.below(moved.to[b]);
    std::int64_t least = forbidden_units;
    const double* cell = edge.cost.data();
    for (std::size_t a = 0; a < moved.from.size(); ++a) {
      const std::int64_t from = units_.below(moved.from[a]);
      cost[edge.from][a] += from;
      for (std::size_t b = 0; b < to.size(); ++b, ++cell) {
        if (*cell == infinity) continue;
        const std::int64_t left = units_.below(*cell) - from - to[b];
        least_from[a] = std::min(least_from[a], left);
        least_to[b] = std::min(least_to[b], left);
      }
      least = std::min(least, least_from[a]);
    }
    for (std::size_t a = 0; a < least_from.size(); ++a) rise[edge.from][a] += least_from[a] - least;
    for (std::size_t b = 0; b < to.size(); ++b) {
      cost[edge.to][b] += to[b];
      rise[edge.to][b] += least_to[b] - least;
    }
    return least;
  }

  const SelectionNetwork& network_;
  const DualSolution& dual_;
  CostUnits units_;
  IntegerPrices prices_;
};

}  // namespace

Certificate certify(const SelectionNetwork& network, const DualSolution& dual) {
  return DualEvaluation(network, dual).run();
}

}  // namespace alpa
