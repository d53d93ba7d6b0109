#include "libalpa/solver/selection/presolve.h"

#include <gmock/gmock.h>

#include "libalpa/base/infinity.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

struct Best {
  double cost = infinity;
  std::vector<int> choice;
};

// By looking at each choice that fits.
Best exhaustive_best(const SelectionNetwork& network) {
  Best best;
  std::vector<int> choice(network.nodes.size(), 0);
  while (true) {
    if (const double cost = network_cost(network, choice); cost < best.cost && fits(network, choice))
      best = {cost, choice};
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == network.strategies(static_cast<int>(i))) choice[i++] = 0;
    if (i == choice.size()) return best;
  }
}

class PresolveKeepsTheOptimum : public testing::TestWithParam<ProblemShape> {};

TEST_P(PresolveKeepsTheOptimum, AndLiftsItBack) {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const SelectionNetwork network = selection_network(random_problem(seed, GetParam()));
    const Best expected = exhaustive_best(network);
    const ReducedNetwork reduced = presolve(network);
    if (reduced.verdict != ReducedNetwork::Verdict::open) {
      EXPECT_EQ(expected.cost, infinity) << "seed " << seed;
      continue;
    }
    const Best found = exhaustive_best(reduced.network);
    ASSERT_EQ(found.cost, expected.cost) << "seed " << seed;  // integers: no rounding
    if (found.cost == infinity) continue;
    const auto lifted = reduced.lifting.lift(found.choice);
    EXPECT_EQ(network_cost(network, lifted), expected.cost) << "seed " << seed;
    EXPECT_TRUE(fits(network, lifted)) << "seed " << seed;
    EXPECT_EQ(reduced.lifting.project(lifted), found.choice) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Solver, PresolveKeepsTheOptimum,
    testing::Values(ProblemShape{.nodes = 6, .edges = 8}, ProblemShape{.nodes = 6, .edges = 15},
                    ProblemShape{.nodes = 6, .edges = 9, .forbidden = 0.4},
                    ProblemShape{.nodes = 6, .edges = 8, .memory = 0.4},
                    ProblemShape{.nodes = 6, .times = 12, .memory = 0.6},
                    ProblemShape{.nodes = 6, .edges = 8, .forbidden = 0.4, .memory = 0.5}));

TEST(Presolve, SolvesAChainWithoutMemoryByItself) {
  SelectionProblem chain;
  for (int i = 0; i < 50; ++i) chain.nodes.push_back({{3, 1, 2}, {}});
  for (int i = 0; i + 1 < 50; ++i) chain.edges.push_back({i, i + 1, {0, 5, 1, 5, 0, 5, 1, 5, 0}});
  const auto reduced = presolve(selection_network(chain));
  EXPECT_TRUE(reduced.network.nodes.empty());
  EXPECT_EQ(reduced.network.constant, 50);
  EXPECT_EQ(reduced.lifting.lift({}), std::vector<int>(50, 1));
}

// Node 1 must do as node 0 does, in reverse order: one node with the memory of both is left.
TEST(Presolve, MergesANodeThatForbiddenPairsDecide) {
  SelectionProblem problem{
      {{{1, 2}, {{0, 2, {10, 2}}}}, {{3, 1}, {{1, 3, {1, 8}}}}}, {{0, 1, {infinity, 0, 0, infinity}}}, 15};
  auto network = selection_network(problem);
  const auto reduced = presolve(network);
  EXPECT_TRUE(reduced.network.nodes.empty());  // (0, 1) would take 18 at time 1
  EXPECT_EQ(reduced.network.constant, 5);
  EXPECT_EQ(reduced.lifting.lift({}), (std::vector<int>{1, 0}));
}

TEST(Presolve, KeepsOfTheTimePointsOnlyThoseThatCanBind) {
  SelectionProblem problem;  // at 0..1 both can be large; at 2 one is alone; at 5 two small ones meet
  problem.nodes = {{{0, 1}, {{0, 3, {9, 2}}}},
                   {{0, 1}, {{0, 2, {9, 1}}}},
                   {{0, 1}, {{5, 6, {3, 1}}}},
                   {{0, 1}, {{5, 7, {3, 1}}}}};
  problem.memory_limit = 12;
  const auto reduced = presolve(selection_network(problem));
  EXPECT_EQ(reduced.network.capacity, (std::vector<std::int64_t>{12 - 3}));
  EXPECT_EQ(reduced.network.nodes.size(), 2u);
}

TEST(Presolve, DropsADearerStrategyUnlessItTakesLessMemory) {
  const auto nodes_left = [](std::int64_t memory_of_the_dearer) {
    SelectionProblem problem;
    problem.nodes = {{{1, 2}, {{0, 1, {5, memory_of_the_dearer}}}}, {{1, 2}, {{0, 1, {6, 3}}}}};
    problem.memory_limit = 10;
    return presolve(selection_network(problem)).network.nodes.size();
  };
  EXPECT_EQ(nodes_left(5), 0u);
  EXPECT_EQ(nodes_left(4), 2u);
}

TEST(Presolve, NamesTheCauseWhenNothingIsLeft) {
  SelectionProblem problem{{{{1}, {{0, 1, {6}}}}, {{1}, {{0, 1, {6}}}}}, {{0, 1, {0}}}, 10};
  EXPECT_EQ(presolve(selection_network(problem)).verdict, ReducedNetwork::Verdict::memory);
  problem.edges[0].cost[0] = infinity;
  EXPECT_EQ(presolve(selection_network(problem)).verdict, ReducedNetwork::Verdict::forbidden);
}

}  // namespace
}  // namespace alpa
