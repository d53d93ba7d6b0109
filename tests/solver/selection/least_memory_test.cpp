#include "libalpa/solver/selection/least_memory.h"

#include <gmock/gmock.h>

#include "libalpa/base/infinity.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

TEST(LeastPeakMemory, IsNeverAboveTheLeanestChoicesPeakAndMostlyNear) {
  double found = 0, possible = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 6, .edges = 8, .forbidden = 0.3, .memory = 0.1});
    const auto expected = exhaustive_search(problem);
    if (expected.least_peak == std::numeric_limits<std::int64_t>::max()) continue;
    const auto least = least_peak_memory(selection_network(problem), problem.memory_limit);
    if (expected.least_peak <= problem.memory_limit) continue;
    ASSERT_LE(least, expected.least_peak) << "seed " << seed;
    found += static_cast<double>(least);
    possible += static_cast<double>(expected.least_peak);
  }
  EXPECT_GT(found, 0.95 * possible);  // what is lost is the gap between mean and maximum, and rounding down
}

// Two nodes that must not both be lean: one byte each, but then together 1 + 9.
TEST(LeastPeakMemory, SeesWhatForbiddenPairsRuleOut) {
  SelectionProblem problem{
      {{{0, 0}, {{0, 1, {1, 9}}}}, {{0, 0}, {{0, 1, {1, 9}}}}}, {{0, 1, {infinity, 0, 0, 0}}}, 5};
  EXPECT_EQ(least_peak_memory(selection_network(problem), problem.memory_limit), 10);
}

}  // namespace
}  // namespace alpa
