#include "libalpa/solver/selection/selection_cache.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "libalpa/base/stop_request.h"
#include "libalpa/solver/selection/strategy_selection.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

constexpr ProblemShape kShape{.nodes = 12, .strategies = 4, .edges = 20, .memory = 0.4};

TEST(SelectionKey, IsAnotherForEveryChangeOfTheProblem) {
  const SelectionProblem problem{
      {{{1, 2}, {{0, 3, {4, 5}}}}, {{3, 4}, {{1, 2, {6, 7}}}}}, {{0, 1, {0, 1, 2, 3}}}, 10};
  const std::vector<std::function<void(SelectionProblem&)>> changes{
      [](auto& p) { p.nodes[0].cost[0] = std::nextafter(1.0, 2.0); },
      [](auto& p) { p.edges[0].cost[0] = -0.0; },
      [](auto& p) { p.edges[0].cost[3] = infinity; },
      [](auto& p) { std::swap(p.edges[0].from, p.edges[0].to); },
      [](auto& p) { p.edges.push_back(p.edges[0]); },
      [](auto& p) { p.nodes[0].memory[0].bytes[1] += 1; },
      [](auto& p) { p.nodes[0].memory[0].begin += 1; },
      [](auto& p) { p.nodes[1].memory[0].end += 1; },
      [](auto& p) { p.nodes[1].memory.push_back(p.nodes[1].memory[0]); },
      [](auto& p) {
        p.nodes.push_back({{0}, {}});
      },
      [](auto& p) { p.memory_limit = 11; }};
  std::set<Fingerprint> keys{selection_key(problem, {})};
  for (const auto& change : changes) {
    SelectionProblem other = problem;
    change(other);
    keys.insert(selection_key(other, {}));
  }
  EXPECT_EQ(keys.size(), changes.size() + 1);
}

// What stands in one list in one problem stands in the next one in the other.
TEST(SelectionKey, KeepsListsApart) {
  const SelectionProblem one{{{{1, 2}, {}}, {{3}, {}}}, {}, -1}, other{{{{1}, {}}, {{2, 3}, {}}}, {}, -1};
  EXPECT_NE(selection_key(one, {}), selection_key(other, {}));
}

TEST(SelectionKey, IsAnotherForOptionsThatDecideAndTheSameForTheOthers) {
  const SelectionProblem problem = random_problem(1, kShape);
  const std::vector<SelectionOptions> deciding{
      {.gap = 1e-3},   {.effort = 10}, {.most_cbc_cells = 0},  {.start = std::vector<int>(12, 0)},
      {.cutoff = 100}, {.enough = 50}, {.gap_of_enough = 0.1}, {.certify = true}};
  std::set<Fingerprint> keys{selection_key(problem, {})};
  for (const SelectionOptions& options : deciding) keys.insert(selection_key(problem, options));
  EXPECT_EQ(keys.size(), deciding.size() + 1);
  const StopRequest stop;
  SelectionCache cache;
  EXPECT_EQ(selection_key(problem, {.time_limit_s = 3,
                                    .stop = &stop,
                                    .threads = 4,
                                    .cache = &cache,
                                    .progress = [](const SelectionProgress&) {}}),
            selection_key(problem, {}));
}

/// All that a solution says, to the last bit.
std::string text_of(const SelectionSolution& s) {
  return fmt::format("{} {} {:a} {:a} {:a} {} {} {} {} {}", s.feasible, fmt::join(s.choice, ","), s.cost,
                     s.lower_bound, s.certified_bound, s.peak_memory, s.proof, s.hit_time_limit,
                     s.by_effort_alone, s.least_memory);
}

TEST(SelectionCache, GivesWhatSolvingGives) {
  SelectionCache cache;
  int feasible = 0;
  constexpr int kProblems = 40;
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t seed = 0; seed < kProblems; ++seed) {
      ProblemShape shape = kShape;
      shape.memory = 0.02 * seed;  // the first have no choice that fits
      shape.forbidden = seed % 3 == 0 ? 0.3 : 0;
      const SelectionProblem problem = random_problem(seed, shape);
      const SelectionSolution solved = solve_selection(problem, {.effort = 2000});
      EXPECT_EQ(text_of(solve_selection(problem, {.effort = 2000, .cache = &cache})), text_of(solved))
          << seed;
      feasible += solved.feasible;
    }
  EXPECT_THAT(feasible, testing::AllOf(testing::Gt(0), testing::Lt(2 * kProblems)));
  EXPECT_EQ(cache.use().added, kProblems);
  EXPECT_EQ(cache.use().found, kProblems);
}

TEST(SelectionCache, KeepsNothingThatTimeEnded) {
  SelectionCache cache;
  const SelectionProblem problem = random_problem(2, kShape);
  ASSERT_TRUE(solve_selection(problem, {.time_limit_s = 0, .cache = &cache}).hit_time_limit);
  StopRequest stop;
  stop.ask();
  ASSERT_TRUE(solve_selection(problem, {.stop = &stop, .cache = &cache}).hit_time_limit);
  EXPECT_EQ(cache.use().added, 0);
}

// Its work is shared out by the clock too.
TEST(SelectionCache, KeepsNothingThatGoesOnBeyondTheEffortAtOnce) {
  SelectionCache cache;
  ProblemShape large{.nodes = 150, .strategies = 12, .edges = 900, .memory = 0.3};
  const SelectionSolution solved =
      solve_selection(random_problem(3, large), {.effort = 1'020'000, .most_cbc_cells = 0, .cache = &cache});
  ASSERT_FALSE(solved.hit_time_limit);
  EXPECT_FALSE(solved.by_effort_alone);
  EXPECT_EQ(cache.use().added, 0);
}

TEST(SelectionCache, GivesAnAnswerAtOnceWhereThereIsNoTimeToSolve) {
  SelectionCache cache;
  const SelectionProblem problem = random_problem(2, kShape);
  const SelectionSolution solved = solve_selection(problem, {.cache = &cache});
  EXPECT_EQ(text_of(solve_selection(problem, {.time_limit_s = 0, .cache = &cache})), text_of(solved));
}

TEST(SelectionCache, IsNotTakenAtItsWordWhereItCannotBeTrue) {
  const SelectionProblem problem = random_problem(2, kShape);
  const SelectionSolution solved = solve_selection(problem);
  ASSERT_TRUE(solved.feasible);
  std::vector<SelectionSolution> wrong(4, solved);
  wrong[0].choice.pop_back();
  wrong[1].choice[0] = 1000;
  wrong[2].choice[0] = -1;
  wrong[3].cost += 1;
  for (const SelectionSolution& solution : wrong) {
    SelectionCache cache;
    cache.add(selection_key(problem, {}), {solution, 0, 0});
    EXPECT_EQ(text_of(solve_selection(problem, {.cache = &cache})), text_of(solved));
  }
}

// Problems that effort ends, not a proof: what the solver comes to is then its own, and shows its changes.
// None is left to CBC.
TEST(SolverVersion, GrowsWithEveryChangeOfWhatTheSolverFinds) {
  RunningFingerprint found;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const SelectionProblem problem =
        random_problem(seed, {.nodes = 60, .strategies = 9, .edges = 240, .times = 30, .memory = 0.3});
    const SelectionSolution solved = solve_selection(problem, {.effort = 300, .most_cbc_cells = 0});
    found.add(solved.choice);
    found.add(solved.lower_bound);
  }
  EXPECT_EQ(kSolverVersion, 1);
  EXPECT_EQ(fingerprint_text(found.value()), "ae68605aa94b3df81d209d612ea26735")
      << "the solver finds other solutions: give strategy_selection.h another kSolverVersion, so that those "
         "kept in files are solved anew, and this test that version and fingerprint";
}

}  // namespace
}  // namespace alpa
