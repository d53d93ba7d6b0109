#include "libalpa/solver/selection/selection_program.h"

#include <gmock/gmock.h>

#include "libalpa/solver/selection/presolve.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

class SelectionAsProgram : public testing::TestWithParam<ProblemShape> {};

TEST_P(SelectionAsProgram, HasTheOptimumOfTheNetwork) {
  int solved = 0;
  for (std::uint32_t seed = 0; solved < 12 && seed < 200; ++seed) {
    const auto problem = random_problem(seed, GetParam());
    const auto reduced = presolve(selection_network(problem));
    if (reduced.verdict != ReducedNetwork::Verdict::open || reduced.network.nodes.empty()) continue;
    ++solved;
    Incumbent incumbent;
    const auto outcome = solve_as_integer_program(reduced.network, incumbent, {}, Deadline(60));
    EXPECT_TRUE(outcome.finished) << "seed " << seed;
    const auto expected = exhaustive_search(problem).cost;
    ASSERT_EQ(outcome.infeasible, !expected.has_value()) << "seed " << seed;
    if (!expected) continue;
    EXPECT_EQ(incumbent.cost, *expected) << "seed " << seed;
    EXPECT_NEAR(outcome.bound, *expected, 1e-3) << "seed " << seed;  // relative gap 1e-6 of costs below 1000
  }
  EXPECT_EQ(solved, 12);
}

INSTANTIATE_TEST_SUITE_P(
    Solver, SelectionAsProgram,
    testing::Values(ProblemShape{.nodes = 6, .strategies = 5, .edges = 21},
                    ProblemShape{.nodes = 7, .edges = 10, .memory = 0.4},
                    ProblemShape{
                        .nodes = 6, .strategies = 5, .edges = 15, .forbidden = 0.15, .memory = 0.5}));

TEST(SelectionAsProgram, StartsFromTheIncumbentAndKeepsIt) {
  const auto problem = random_problem(0, {.nodes = 8, .strategies = 6, .edges = 50});
  const auto network = presolve(selection_network(problem)).network;
  ASSERT_FALSE(network.nodes.empty());
  Incumbent best;
  solve_as_integer_program(network, best, {}, Deadline(60));
  Incumbent again = best;
  const auto outcome = solve_as_integer_program(network, again, {}, Deadline(60));
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(again.cost, best.cost);
}

}  // namespace
}  // namespace alpa
