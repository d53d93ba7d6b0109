#include "libalpa/solver/integer_program/integer_program.h"

#include <gmock/gmock.h>

#include <thread>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/integer_program/solve_integer_program.h"

namespace alpa {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using Status = IntegerProgramResult::Status;

constexpr double tolerance = 1e-6;  // CBC's, on integrality

// A knapsack: values 8, 11, 6, 4, weights 5, 7, 4, 3, at most `weight`.
IntegerProgram knapsack(double weight) {
  IntegerProgram program;
  const double values[] = {8, 11, 6, 4}, weights[] = {5, 7, 4, 3};
  for (int k = 0; k < 4; ++k) program.add_entry(program.add_column(-values[k], true), weights[k]);
  program.end_row(-infinity, weight);
  return program;
}

TEST(IntegerProgram, IsSolvedToOptimality) {
  const auto result = solve_integer_program(knapsack(14), {});
  EXPECT_EQ(result.status, Status::optimal);
  EXPECT_NEAR(result.bound, -21, tolerance);
  EXPECT_THAT(result.solution, ElementsAre(DoubleNear(0, tolerance), DoubleNear(1, tolerance),
                                           DoubleNear(1, tolerance), DoubleNear(1, tolerance)));
}

TEST(IntegerProgram, TakesAStartWithoutLosingTheOptimum) {
  const auto result = solve_integer_program(knapsack(14), {.start = {1, 1, 0, 0}});
  EXPECT_EQ(result.status, Status::optimal);
  EXPECT_NEAR(result.bound, -21, tolerance);
}

TEST(IntegerProgram, IsProvenInfeasible) {
  EXPECT_EQ(solve_integer_program(knapsack(-1), {}).status, Status::infeasible);
}

TEST(IntegerProgram, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  solve_integer_program(knapsack(14), {});
  solve_integer_program(knapsack(-1), {});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(IntegerProgram, IsSolvedInSeveralThreadsAtOnce) {
  std::vector<IntegerProgramResult> results(4);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&results, k] { results[k] = solve_integer_program(knapsack(7 + 2 * k), {}); });
  }
  for (auto& thread : threads) thread.join();
  const double expected[] = {-11, -14, -17, -19};
  for (int k = 0; k < 4; ++k) EXPECT_NEAR(results[k].bound, expected[k], tolerance);
}

}  // namespace
}  // namespace alpa
