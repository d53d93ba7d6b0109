#include "libalpa/solver/selection/prices.h"

#include <gmock/gmock.h>

#include "libalpa/solver/selection/presolve.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

TEST(FindPrices, BoundsTheOptimumAndRulesNoBestStrategyOut) {
  int priced_problems = 0, solved = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 7, .strategies = 4, .edges = 10, .memory = 0.3});
    const auto reduced = presolve(selection_network(problem));
    const auto expected = exhaustive_search(problem).cost;
    if (!expected || reduced.network.nodes.empty()) continue;
    ++priced_problems;
    Incumbent incumbent;
    const PricedBound priced = find_prices(reduced.network, incumbent, {}, Deadline(60));
    EXPECT_LE(priced.bound, *expected + 1e-6) << "seed " << seed;
    EXPECT_GE(incumbent.cost, *expected) << "seed " << seed;
    if (priced.reduced_costs.empty()) {  // it needs none
      EXPECT_NEAR(incumbent.cost, *expected, PriceOptions().gap * std::abs(*expected)) << "seed " << seed;
      ++solved;
      continue;
    }
    // Some best choice must survive; presolve with the rest forbidden must keep the optimum.
    auto pruned = reduced.network;
    for (std::size_t i = 0; i < pruned.nodes.size(); ++i) {
      for (std::size_t a = 0; a < pruned.nodes[i].cost.size(); ++a) {
        if (priced.reduction_bound + priced.reduced_costs[i][a] > *expected + 1e-6) {
          pruned.nodes[i].cost[a] = std::numeric_limits<double>::infinity();
        }
      }
    }
    EXPECT_NE(presolve(pruned).verdict, ReducedNetwork::Verdict::forbidden) << "seed " << seed;
  }
  EXPECT_GT(priced_problems - solved, 30);
  EXPECT_GT(solved, 20);
}

TEST(FindPrices, ByMessagesAloneBoundsTheOptimumToo) {
  int open = 0, solved = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 9, .strategies = 4, .edges = 26});
    const auto reduced = presolve(selection_network(problem));
    const auto expected = exhaustive_search(problem).cost;
    if (!expected || reduced.network.nodes.empty()) continue;
    PriceOptions options;
    options.most_sweeps = 10;
    Incumbent incumbent;
    const PricedBound priced = find_prices(reduced.network, incumbent, options, Deadline(60));
    EXPECT_LE(priced.bound, *expected + 1e-6) << "seed " << seed;
    EXPECT_GE(incumbent.cost, *expected) << "seed " << seed;
    EXPECT_TRUE(priced.reduced_costs.empty()) << "seed " << seed;
    const bool is_closed = incumbent.cost - priced.bound <= options.gap * std::abs(incumbent.cost);
    ++(is_closed ? solved : open);
  }
  EXPECT_GT(open, 10);  // as messages are weaker than elimination
  EXPECT_GT(solved, 10);
}

}  // namespace
}  // namespace alpa
