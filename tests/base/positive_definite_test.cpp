#include "libalpa/base/positive_definite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace alpa {
namespace {

// A = B B^T + I, whose condition is that of small numbers: what is left over is rounding.
TEST(PositiveDefinite, IsSolved) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const std::size_t n : {1, 2, 3, 8, 20}) {
    std::vector<double> b(n * n), matrix(n * n), expected(n), right(n);
    for (double& each : b) each = normal(random);
    for (double& each : expected) each = normal(random);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        matrix[i * n + j] = i == j;
        for (std::size_t k = 0; k < n; ++k) matrix[i * n + j] += b[i * n + k] * b[j * n + k];
        right[i] += matrix[i * n + j] * expected[j];
      }
    const std::vector<double> x = solved(matrix, right);
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], expected[i], 1e-9) << n;
  }
}

TEST(PositiveDefinite, HasFiniteNumbersWhereItIsSingular) {
  for (const double x : solved({1, 1, 1, 1}, {1, 1})) EXPECT_TRUE(std::isfinite(x));
  for (const double x : solved({0, 0, 0, 0}, {1, 2})) EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace alpa
