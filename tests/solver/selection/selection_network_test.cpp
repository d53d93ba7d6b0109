#include "libalpa/solver/selection/selection_network.h"

#include <gmock/gmock.h>

#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {
namespace {

// Two nodes that overlap at 2..3, one that never lives.
SelectionProblem overlapping() {
  SelectionProblem problem;
  problem.nodes = {{{1, 2}, {{0, 3, {8, 4}}}}, {{3}, {{2, 6, {5}}}}, {{7}, {{4, 4, {100}}}}};
  problem.edges = {{1, 0, {10, 20}}};
  problem.memory_limit = 10;
  return problem;
}

TEST(SelectionNetwork, HasATimePointBetweenAnyTwoEndsOfIntervals) {
  const auto network = selection_network(overlapping());
  EXPECT_EQ(network.capacity, (std::vector<std::int64_t>{10, 10, 10}));  // 0..2, 2..3, 3..6
  EXPECT_EQ(free_memory(network, {0, 0, 0}), (std::vector<std::int64_t>{2, -3, 5}));
  EXPECT_FALSE(fits(network, {0, 0, 0}));
  EXPECT_TRUE(fits(network, {1, 0, 0}));
}

TEST(SelectionNetwork, AddsUpTheMemoryOfANodeWhereItsIntervalsMeet) {
  SelectionProblem problem;
  problem.nodes = {{{0, 0}, {{0, 4, {1, 2}}, {2, 6, {10, 20}}}}};
  problem.memory_limit = 30;
  const SelectionNetwork network = selection_network(problem);
  ASSERT_EQ(network.nodes[0].pieces.size(), 3u);
  EXPECT_EQ(network.nodes[0].pieces[1].memory, (std::vector<std::int64_t>{11, 22}));
  EXPECT_EQ(free_memory(network, {1}), (std::vector<std::int64_t>{28, 8, 10}));
  EXPECT_EQ(selection_peak_memory(problem, {1}), 22);
}

TEST(SelectionNetwork, CostsWhatTheProblemCosts) {
  const auto problem = overlapping();
  for (int a : {0, 1})
    EXPECT_EQ(network_cost(selection_network(problem), {a, 0, 0}), selection_cost(problem, {a, 0, 0}));
}

TEST(SelectionNetwork, WithoutALimitHasNoTime) {
  auto problem = overlapping();
  problem.memory_limit = -1;
  EXPECT_TRUE(selection_network(problem).capacity.empty());
  EXPECT_TRUE(fits(selection_network(problem), {0, 0, 0}));
}

TEST(PricedCosts, ChargeEachByteForTheTimeItIsHeld) {
  const auto costs = priced_costs(selection_network(overlapping()), {0.5, 1, 0});
  EXPECT_EQ(costs[0], (std::vector<double>{1 + 8 * 1.5, 2 + 4 * 1.5}));
  EXPECT_EQ(costs[1], (std::vector<double>{3 + 5 * 1.0}));
  EXPECT_EQ(costs[2], (std::vector<double>{7}));
}

TEST(AddEdgeCosts, ReadsTheEdgeFromEitherEnd) {
  const auto network = selection_network(overlapping());
  std::vector<double> of_first(2, 0), of_second(1, 0);
  add_edge_costs(network, network.edges[0], 0, 0, of_first);
  add_edge_costs(network, network.edges[0], 1, 1, of_second);
  EXPECT_EQ(of_first, (std::vector<double>{10, 20}));
  EXPECT_EQ(of_second, (std::vector<double>{20}));
}

}  // namespace
}  // namespace alpa
