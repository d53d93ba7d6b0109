#include "libalpa/solver/selection/anytime_search.h"

#include <gtest/gtest.h>

#include <chrono>

#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/strategy_selection.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

TEST(AnytimeSearch, FindsTheOptimumOfSmallProblemsAndABoundBelow) {
  int searched = 0, optimal = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 8, .strategies = 4, .edges = 14, .memory = 0.4});
    const auto optimum = exhaustive_search(problem).cost;
    const auto reduced = presolve(selection_network(problem));
    if (!optimum || reduced.verdict != ReducedNetwork::Verdict::open || reduced.network.nodes.empty())
      continue;
    ++searched;
    const Deadline deadline(60);
    AnytimeSearch search(reduced.network, {.price = {}, .target = *optimum, .seed = seed}, deadline);
    Incumbent incumbent;
    search.run(1, incumbent);
    EXPECT_LE(search.certificate().bound, *optimum) << "seed " << seed;
    if (!incumbent.exists()) continue;
    EXPECT_TRUE(fits(reduced.network, incumbent.choice)) << "seed " << seed;
    EXPECT_EQ(network_cost(reduced.network, incumbent.choice), incumbent.cost) << "seed " << seed;
    EXPECT_GE(incumbent.cost, *optimum) << "seed " << seed;
    optimal += incumbent.cost == *optimum;
  }
  EXPECT_GT(searched, 10);
  EXPECT_GE(optimal, searched * 9 / 10);
}

SelectionProblem entangled_problem() {
  return random_problem(7, {.nodes = 120, .strategies = 8, .edges = 420, .times = 30, .memory = 0.35});
}

TEST(AnytimeSearch, DoesTheSameOnAnyNumberOfThreads) {
  const auto network = presolve(selection_network(entangled_problem())).network;
  ASSERT_FALSE(network.nodes.empty());
  const Deadline deadline(600);
  std::vector<Incumbent> found(2);
  std::vector<double> bounds;
  for (int threads : {1, 2}) {
    AnytimeSearch search(network, {.price = {}, .work = 1.5e8, .threads = threads}, deadline);
    search.run(100, found[threads - 1]);
    bounds.push_back(search.certificate().bound);
  }
  EXPECT_EQ(found[0].choice, found[1].choice);
  EXPECT_EQ(bounds[0], bounds[1]);
}

TEST(SolveSelection, UsesAndKeepsItsTime) {
  SelectionOptions options;
  options.effort = kUnlimitedEffort;
  options.time_limit_s = 1;
  options.certify = true;
  options.threads = 2;
  options.gap = 0;
  int reports = 0;
  options.progress = [&](const SelectionProgress&) { ++reports; };
  const auto begin = std::chrono::steady_clock::now();
  const auto solution = solve_selection(entangled_problem(), options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(solution.feasible);
  EXPECT_TRUE(solution.hit_time_limit) << solution.proof;
  EXPECT_GE(seconds.count(), 0.9);
  EXPECT_LE(seconds.count(), 5) << "much more than needed even under sanitizers";
  EXPECT_LE(solution.certified_bound, solution.cost);
  EXPECT_GT(solution.certified_bound, 0);
  EXPECT_GT(reports, 0);
}

}  // namespace
}  // namespace alpa
