#include "libalpa/solver/selection/strategy_selection.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// The toy instance of the ASPLOS/EuroSys 2025 contest (google/iopddl, example.json, Apache License 2.0).
SelectionProblem contest_example() {
  SelectionProblem problem;
  problem.nodes = {{{15}, {{30, 70, {10}}}},
                   {{55, 65}, {{40, 70, {25, 25}}}},
                   {{25, 45, 35}, {{50, 120, {15, 20, 15}}}},
                   {{85, 75}, {{110, 140, {10, 10}}}},
                   {{95}, {{110, 150, {15}}}}};
  problem.edges = {{0, 1, {30, 40}},
                   {0, 2, {50, 10, 40}},
                   {1, 3, {90, 10, 20, 80}},
                   {2, 4, {60, 20, 30}},
                   {3, 4, {70, 60}}};
  problem.memory_limit = 50;
  return problem;
}

TEST(SelectionCost, IsWhatTheContestSaysForItsExample) {
  EXPECT_EQ(selection_cost(contest_example(), {0, 0, 2, 1, 0}), 445);
  EXPECT_EQ(selection_cost(contest_example(), {0, 1, 2, 0, 0}), 495);
  EXPECT_EQ(selection_cost(contest_example(), {0, 0, 1, 1, 0}), 415);
}

TEST(SelectionCost, IsInfiniteWithAForbiddenPair) {
  SelectionProblem problem{{{{1, 2}, {}}, {{3, 4}, {}}}, {{0, 1, {0, infinity, 5, 0}}}, -1};
  EXPECT_EQ(selection_cost(problem, {0, 1}), infinity);
  EXPECT_EQ(selection_cost(problem, {1, 0}), 10);
}

TEST(SelectionPeakMemory, AddsWhatIsLiveOverHalfOpenIntervals) {
  EXPECT_EQ(selection_peak_memory(contest_example(), {0, 0, 2, 1, 0}), 50);
  EXPECT_EQ(selection_peak_memory(contest_example(), {0, 0, 1, 1, 0}), 55);
  SelectionProblem chain{{{{0}, {{0, 2, {7}}}}, {{0}, {{2, 4, {5}}}}, {{0}, {{3, 3, {100}}}}}, {}, -1};
  EXPECT_EQ(selection_peak_memory(chain, {0, 0, 0}),
            7);  // the second begins as the first ends; the third never lives
}

TEST(SolveSelection, FindsTheContestExamplesOptimum) {
  const auto solution = solve_selection(contest_example());
  EXPECT_EQ(solution.choice, (std::vector<int>{0, 0, 2, 1, 0}));
  EXPECT_EQ(solution.cost, 445);
  EXPECT_EQ(solution.peak_memory, 50);
  EXPECT_EQ(solution.proof, "optimal");
}

TEST(SolveSelection, WithoutALimitTakesTheCheaperChoiceOfTheContestExample) {
  auto problem = contest_example();
  problem.memory_limit = -1;
  EXPECT_EQ(solve_selection(problem).cost, 415);
}

TEST(SolveSelection, OfNothingCostsNothing) {
  const auto solution = solve_selection({});
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.cost, 0);
}

void expect_exhaustive_optimum(std::uint32_t seed, const ProblemShape& shape) {
  const auto problem = random_problem(seed, shape);
  const auto expected = exhaustive_search(problem);
  const auto solution = solve_selection(problem);
  ASSERT_EQ(solution.feasible, expected.cost.has_value()) << "seed " << seed << ": " << solution.proof;
  if (!solution.feasible) {
    EXPECT_THAT(solution.proof, StartsWith("infeasible")) << "seed " << seed;
    if (expected.least_peak < std::numeric_limits<std::int64_t>::max()) {
      EXPECT_GT(solution.least_memory, problem.memory_limit) << "seed " << seed;
      EXPECT_LE(solution.least_memory, expected.least_peak) << "seed " << seed;
    }
    return;
  }
  // Costs are integers below 1000 and the gap is 1e-6, so optimal means equal; the bound may be off by that
  // gap.
  EXPECT_EQ(solution.cost, *expected.cost) << "seed " << seed << ": " << solution.proof;
  EXPECT_EQ(solution.cost, selection_cost(problem, solution.choice)) << "seed " << seed;
  EXPECT_EQ(solution.peak_memory, selection_peak_memory(problem, solution.choice)) << "seed " << seed;
  EXPECT_LE(solution.lower_bound, *expected.cost) << "seed " << seed;
  EXPECT_EQ(solution.proof, "optimal") << "seed " << seed;
  if (problem.memory_limit >= 0) {
    EXPECT_LE(solution.peak_memory, problem.memory_limit) << "seed " << seed;
  }
}

struct Family {
  const char* name;
  ProblemShape shape;
};

class AgainstExhaustiveSearch : public testing::TestWithParam<Family> {};

TEST_P(AgainstExhaustiveSearch, FindsTheOptimumOrProvesThereIsNone) {
  for (std::uint32_t seed = 0; seed < 250; ++seed) expect_exhaustive_optimum(seed, GetParam().shape);
}

INSTANTIATE_TEST_SUITE_P(
    Solver, AgainstExhaustiveSearch,
    testing::Values(Family{"Tree", {.nodes = 7, .edges = 5}}, Family{"Dense", {.nodes = 6, .edges = 20}},
                    Family{"Forbidden", {.nodes = 7, .edges = 9, .forbidden = 0.3}},
                    Family{"MostlyForbidden", {.nodes = 6, .edges = 8, .forbidden = 0.6}},
                    Family{"TightMemory", {.nodes = 7, .edges = 9, .memory = 0.3}},
                    Family{"LooseMemory", {.nodes = 7, .edges = 9, .memory = 0.6}},
                    Family{"DenseTightMemory", {.nodes = 6, .strategies = 5, .edges = 15, .memory = 0.25}},
                    Family{"ForbiddenTightMemory", {.nodes = 7, .edges = 8, .forbidden = 0.3, .memory = 0.4}},
                    Family{"TooLittleMemory", {.nodes = 6, .edges = 6, .memory = 0.05}}),
    [](const auto& instance) { return instance.param.name; });

TEST(SolveSelection, SaysHowMuchMemoryAnyChoiceNeeds) {
  auto problem = contest_example();
  problem.memory_limit = 40;
  const auto solution = solve_selection(problem);
  EXPECT_FALSE(solution.feasible);
  EXPECT_EQ(solution.proof, "infeasible: memory");
  EXPECT_EQ(solution.least_memory, 50);
  EXPECT_TRUE(solution.choice.empty());
}

TEST(SolveSelection, SaysWhenForbiddenPairsLeaveNothing) {
  SelectionProblem problem{
      {{{1, 2}, {}}, {{3, 4}, {}}}, {{0, 1, {infinity, infinity, infinity, infinity}}}, -1};
  EXPECT_EQ(solve_selection(problem).proof, "infeasible: forbidden strategies and pairs leave no choice");
}

TEST(SolveSelection, LeavesForbiddenStrategiesOutHoweverDearTheRest) {
  SelectionProblem problem{{{{infinity, 1e15}, {}}, {{3, infinity}, {}}}, {{0, 1, {0, 0, 1e15, 0}}}, -1};
  EXPECT_EQ(solve_selection(problem).choice, (std::vector<int>{1, 0}));
}

TEST(SolveSelection, AcceptsNegativeCosts) {
  SelectionProblem problem{
      {{{-5, -1}, {{0, 1, {9, 1}}}}, {{-2, 0}, {{0, 1, {9, 1}}}}}, {{0, 1, {-1, 0, 0, -3}}}, 10};
  const auto solution = solve_selection(problem);
  EXPECT_EQ(solution.cost, -5);  // (0, 1); (0, 0) costs -8 and does not fit
  EXPECT_EQ(solution.proof, "optimal");
}

// Strategy 0 is allowed throughout and dear; everything else is hemmed in by forbidden pairs, in a graph too
// wide for tables.
TEST(SolveSelection, FindsAnAllowedChoiceInAThicketOfForbiddenPairs) {
  std::mt19937 draw(3);
  SelectionProblem problem;
  constexpr int nodes = 60, strategies = 6;
  for (int i = 0; i < nodes; ++i)
    problem.nodes.push_back({{90, 1, 2, 3, 4, 5}, {{0, 1, {1, 2, 3, 4, 5, 6}}}});
  for (int i = 0; i < nodes; ++i) {
    for (int step : {1, 7, 18, 23}) {
      auto& edge = problem.edges.emplace_back();
      edge.from = i, edge.to = (i + step) % nodes;
      for (int c = 0; c < strategies * strategies; ++c) {
        edge.cost.push_back(c > 0 && draw() % 100 < 45 ? infinity : static_cast<double>(draw() % 10));
      }
    }
  }
  problem.memory_limit = 200;
  const auto solution = solve_selection(problem, {.effort = 20'000});
  ASSERT_TRUE(solution.feasible) << solution.proof;
  EXPECT_LT(solution.cost, infinity);
  EXPECT_LE(solution.peak_memory, 200);
  EXPECT_LE(solution.lower_bound, solution.cost);
}

// A ladder of identical layers, as a model gives: wide enough that tables do not solve it at once.
SelectionProblem layered_problem(int layers, std::int64_t memory_limit) {
  std::mt19937 draw(7);
  const auto below = [&](int count) {
    return static_cast<double>(draw() % static_cast<std::uint32_t>(count));
  };
  constexpr int width = 4, strategies = 6;
  SelectionProblem problem;
  for (int l = 0; l < layers; ++l) {
    for (int k = 0; k < width; ++k) {
      auto& node = problem.nodes.emplace_back();
      node.memory = {{l, 2 * layers - l, {}}};  // held until its backward pass
      for (int a = 0; a < strategies; ++a)
        node.cost.push_back(below(1000)), node.memory[0].bytes.push_back(100 + 97 * a);
    }
  }
  for (int i = 0; i < layers * width; ++i) {
    for (int other : {i + 1, i + width - 1, i + width}) {
      if (other >= layers * width) continue;
      auto& edge = problem.edges.emplace_back();
      edge.from = i;
      edge.to = other;
      for (int c = 0; c < strategies * strategies; ++c) edge.cost.push_back(below(300));
    }
  }
  problem.memory_limit = memory_limit;
  return problem;
}

TEST(SolveSelection, GivesTheSameAnswerEveryTimeAndInEveryThread) {
  const auto problem = layered_problem(6, 7'000);
  const auto first = solve_selection(problem);
  ASSERT_TRUE(first.feasible);
  std::vector<SelectionSolution> others(3);
  std::vector<std::thread> threads;
  for (auto& other : others) threads.emplace_back([&] { other = solve_selection(problem); });
  for (auto& thread : threads) thread.join();
  for (const auto& other : others) {
    EXPECT_EQ(other.choice, first.choice);
    EXPECT_EQ(other.lower_bound, first.lower_bound);
    EXPECT_EQ(other.proof, first.proof);
  }
}

// What costs no more than is enough need not be near the best; what costs more must be, and bounds hold for
// all.
TEST(SolveSelection, LeavesWhatIsGoodEnough) {
  const SelectionProblem problem = layered_problem(6, 7'000);
  const SelectionSolution best = solve_selection(problem, {.gap = 1e-3});
  ASSERT_TRUE(best.feasible);
  const auto within = [&](double enough, double gap_of_enough) {
    SelectionOptions options;
    options.gap = 1e-3;
    options.enough = enough;
    options.gap_of_enough = gap_of_enough;
    const SelectionSolution solution = solve_selection(problem, options);
    EXPECT_TRUE(solution.feasible);
    EXPECT_LE(solution.lower_bound, best.cost);
    return solution;
  };
  const SelectionSolution rough = within(2 * best.cost, 0.5);
  EXPECT_LE(rough.gap(), 0.5);
  EXPECT_GT(rough.gap(), 1e-3);  // it ended as soon as it might
  EXPECT_THAT(rough.proof, HasSubstr("good enough"));
  EXPECT_LE(within(0.5 * best.cost, 0.5).gap(), 1e-3);
  EXPECT_LE(within(2 * best.cost, 0).gap(), 1e-3);
}

TEST(SolveSelection, ReportsTheGapWhenItsEffortEnds) {
  const auto solution = solve_selection(layered_problem(12, 15'000), {.gap = 1e-9, .effort = 100});
  ASSERT_TRUE(solution.feasible);
  EXPECT_LE(solution.peak_memory, 15'000);
  EXPECT_LE(solution.lower_bound, solution.cost);
  EXPECT_GT(solution.lower_bound, 0.5 * solution.cost);
  if (solution.proof != "optimal") {
    EXPECT_THAT(solution.proof, HasSubstr("effort limit"));
  }
}

TEST(SolveSelection, ReportsTheTimeLimitAndStillNamesAChoiceOrNone) {
  const auto solution = solve_selection(layered_problem(30, 40'000), {.time_limit_s = 0});
  EXPECT_THAT(solution.proof, HasSubstr("time limit"));
  EXPECT_LE(solution.lower_bound, solution.cost);
}

struct Fault {
  const char* name;
  std::function<void(SelectionProblem&)> spoil;
  const char* message;
};

class MalformedProblem : public testing::TestWithParam<Fault> {};

TEST_P(MalformedProblem, IsRefusedWithTheFaultNamed) {
  auto problem = contest_example();
  GetParam().spoil(problem);
  EXPECT_THAT([&] { solve_selection(problem); }, ThrowsMessage<Error>(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Solver, MalformedProblem,
    testing::Values(
        Fault{"NoStrategy", [](auto& p) { p.nodes[3].cost.clear(); }, "node 3 has no strategy"},
        Fault{"MemorySizes", [](auto& p) { p.nodes[1].memory[0].bytes.pop_back(); },
              "node 1 has 2 costs and 1 memory sizes"},
        Fault{"NegativeMemory", [](auto& p) { p.nodes[1].memory[0].bytes[0] = -4; }, "node 1 has -4 bytes"},
        Fault{"BackwardInterval", [](auto& p) { p.nodes[0].memory[0].end = 3; }, "node 0 lives from 30 to 3"},
        Fault{"NotANumber", [](auto& p) { p.nodes[0].cost[0] = NAN; }, "node 0 has a cost that is nan"},
        Fault{"MinusInfinity", [](auto& p) { p.edges[1].cost[1] = -infinity; },
              "edge 1 from 0 to 2 has a cost that is -inf"},
        Fault{"EdgeSize", [](auto& p) { p.edges[2].cost.pop_back(); },
              "edge 2 from 1 to 3 has 3 costs, not 4"},
        Fault{"EdgeEnd", [](auto& p) { p.edges[4].to = 5; }, "edge 4 from 3 to 5 leaves the 5 nodes"},
        Fault{"Loop", [](auto& p) { p.edges[4].to = 3; }, "edge 4 from 3 to 3 is a loop"},
        Fault{"HugeMemory",
              [](auto& p) { p.nodes[0].memory[0].bytes[0] = p.nodes[4].memory[0].bytes[0] = INT64_MAX / 2; },
              "beyond 64 bits"}),
    [](const auto& instance) { return instance.param.name; });

TEST(SelectionCost, RefusesAChoiceOfAnotherProblem) {
  EXPECT_THAT(
      [] {
        selection_cost(contest_example(), {0, 0});
      },
      ThrowsMessage<Error>(HasSubstr("2 strategies for 5 nodes")));
  EXPECT_THAT(
      [] {
        selection_peak_memory(contest_example(), {0, 2, 0, 0, 0});
      },
      ThrowsMessage<Error>(HasSubstr("strategy 2 of node 1, which has 2")));
}

// Only memory ties the nodes together; near the bound there is nothing left to make smaller.
TEST(SolveSelection, SolvesNodesWithoutEdges) {
  for (std::uint32_t seed = 0; seed < 60; ++seed)
    for (const double memory : {0.2, 0.25, 0.3, 0.5, 0.6, 0.7}) {
      const double gap = 1e-2;
      const SelectionProblem problem =
          random_problem(seed, {.nodes = 40, .strategies = 8, .edges = 0, .times = 4, .memory = memory});
      const SelectionSolution found = solve_selection(problem, {.gap = gap});
      if (!found.feasible) continue;
      EXPECT_LE(selection_peak_memory(problem, found.choice), problem.memory_limit) << "seed " << seed;
      EXPECT_LE(found.cost - found.lower_bound, gap * found.cost) << "seed " << seed;
    }
}

// Tables over five nodes are hundreds of times the size of the problem: messages are passed before they are
// filled, and may do.
TEST(SolveSelection, KeepsItsGapWhereTablesAreFarLargerThanTheProblem) {
  constexpr int width = 4, nodes = 32, strategies = 10;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 draw(seed);
    SelectionProblem grid;
    for (int i = 0; i < nodes; ++i) {
      grid.nodes.push_back({.cost = std::vector<double>(strategies), .memory = {}});
      for (double& cost : grid.nodes[i].cost) cost = draw() % 30;
      for (const int before : {i - width, i % width > 0 ? i - 1 : -1}) {
        if (before < 0) continue;
        grid.edges.push_back({before, i, std::vector<double>(strategies * strategies)});
        for (double& cost : grid.edges.back().cost) cost = draw() % 30;
      }
    }
    const SelectionSolution exact = solve_selection(grid, {.gap = 0});
    EXPECT_EQ(exact.cost, exact.lower_bound) << "seed " << seed;
    for (const double gap : {0.002, 0.05, 0.2}) {
      const SelectionSolution found = solve_selection(grid, {.gap = gap});
      EXPECT_LE(found.cost - found.lower_bound, gap * found.cost) << "seed " << seed;
      EXPECT_LE(found.lower_bound, exact.cost) << "seed " << seed;
      EXPECT_GE(found.cost, exact.cost) << "seed " << seed;
    }
  }
}

TEST(SolveSelection, NeverReturnsWorseThanTheStart) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const SelectionProblem problem = random_problem(seed, {.nodes = 8, .edges = 12, .memory = 0.6});
    const SelectionSolution best = solve_selection(problem);
    if (!best.feasible) continue;
    // An effort of nothing: what comes out is the start, or better.
    const SelectionSolution started = solve_selection(problem, {.effort = 1, .start = best.choice});
    ASSERT_TRUE(started.feasible) << "seed " << seed;
    EXPECT_EQ(started.cost, best.cost) << "seed " << seed;
  }
}

TEST(SolveSelection, LeavesAStartAsideThatDoesNotFit) {
  const SelectionProblem problem = contest_example();
  EXPECT_EQ(solve_selection(problem, {.start = {0, 0, 1, 1, 0}}).cost, 445);
}

TEST(SolveSelection, EndsAtTheCutoffWithABoundThatReachesIt) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const SelectionProblem problem = random_problem(seed, {.nodes = 8, .edges = 12, .memory = 0.6});
    const SelectionSolution best = solve_selection(problem);
    if (!best.feasible) continue;
    const SelectionSolution below = solve_selection(problem, {.cutoff = best.cost});
    EXPECT_FALSE(below.feasible) << "seed " << seed;
    EXPECT_GE(below.lower_bound, best.cost) << "seed " << seed;
    const SelectionSolution within = solve_selection(problem, {.cutoff = best.cost + 1});
    ASSERT_TRUE(within.feasible) << "seed " << seed;
    EXPECT_EQ(within.cost, best.cost) << "seed " << seed;
  }
}

}  // namespace
}  // namespace alpa
