#include "libalpa/solver/selection/dual_certificate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

// Any prices and messages, of any size: what they prove must hold.
DualSolution arbitrary_dual(const SelectionNetwork& network, std::uint32_t seed, double size) {
  std::mt19937 draw(seed);
  const auto number = [&] { return size * (static_cast<double>(draw()) / 0x1p32 - 0.5); };
  DualSolution dual;
  for (std::size_t t = 0; t < network.capacity.size(); ++t) dual.price.push_back(std::max(0.0, number()));
  for (const auto& edge : network.edges) {
    auto& moved = dual.moved.emplace_back();
    for (int a = 0; a < network.strategies(edge.from); ++a) moved.from.push_back(number());
    for (int b = 0; b < network.strategies(edge.to); ++b) moved.to.push_back(number());
  }
  return dual;
}

TEST(Certify, IsNeverAboveTheOptimum) {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    auto problem = random_problem(seed, {.nodes = 5, .edges = 6, .forbidden = 0.1, .memory = 0.4});
    if (seed % 3 == 0)  // costs that are no multiples of powers of two
      for (auto& node : problem.nodes)
        for (double& cost : node.cost) cost *= 0.1;
    const auto optimum = exhaustive_search(problem).cost;
    if (!optimum) continue;
    ++compared;
    const auto network = selection_network(problem);
    for (const double size : {0.0, 1e-3, 10.0, 1e6})
      EXPECT_LE(certify(network, arbitrary_dual(network, seed, size)).bound,
                *optimum + (seed % 3 ? 0 : 1e-12))
          << "seed " << seed;
  }
  EXPECT_GT(compared, 100);
}

TEST(Certify, SaysWhatAStrategyRaisesTheBoundBy) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 5, .edges = 6, .memory = 0.5});
    const auto network = selection_network(problem);
    const Certificate certificate = certify(network, arbitrary_dual(network, seed, 4));
    for (std::size_t i = 0; i < problem.nodes.size(); ++i)
      for (std::size_t a = 0; a < problem.nodes[i].cost.size(); ++a) {
        auto forced = problem;
        for (std::size_t b = 0; b < forced.nodes[i].cost.size(); ++b)
          if (b != a) forced.nodes[i].cost[b] = infinity;
        const auto optimum = exhaustive_search(forced).cost;
        if (!optimum) continue;
        EXPECT_LE(certificate.bound + certificate.reduced_costs[i][a], *optimum + 1e-9) << "seed " << seed;
      }
  }
}

// 2^52 + 1 of one node and halves of it moved: sums in floating point would round.
TEST(Certify, CountsLargeIntegersExactly) {
  SelectionNetwork network;
  const double large = 0x1p52 + 1;
  network.nodes = {{{large, large + 1}, {}}, {{1, 2}, {}}};
  network.edges = {{0, 1, {0, 1, 1, 0}}};
  EXPECT_LE(certify(network, {{}, {{{0.25, 0.5}, {0.125, 0}}}}).bound, large + 1);
  EXPECT_EQ(certify(network, {{}, {{{0, 0}, {0, 0}}}}).bound, large + 1);
}

}  // namespace
}  // namespace alpa
