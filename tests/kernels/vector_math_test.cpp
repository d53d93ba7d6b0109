#include "libalpa/kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"

namespace alpa {
namespace {

/// The instruction sets that this processor has.
std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

std::vector<float> exponentials(InstructionSet set, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  run_vectorized(set, 0, static_cast<std::int64_t>(x.size()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = fast_exp(x[i]);
  });
  return y;
}

TEST(FastExp, IsWithinTwoUnitsInTheLastPlaceOfEveryNormalResult) {
  std::vector<float> x;
  for (float at = -87.3f; at < 88.72f; at += 0.00137f) x.push_back(at);
  for (const InstructionSet set : instruction_sets()) {
    const std::vector<float> y = exponentials(set, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i] / std::exp(static_cast<double>(x[i])), 1.0, 2 * 0x1p-23) << x[i];
  }
}

TEST(FastExp, TreatsTheEndsOfTheLineAsTheStandardOneDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const InstructionSet set : instruction_sets()) {
    const std::vector<float> y =
        exponentials(set, {-infinity, -1000, -88, 0, 89, 1000, infinity, std::nanf("")});
    EXPECT_EQ((std::vector<float>(y.begin(), y.end() - 1)),
              (std::vector<float>{0, 0, 0, 1, infinity, infinity, infinity}));
    EXPECT_TRUE(std::isnan(y.back()));
  }
}

TEST(Sigmoid, KeepsItsPrecisionWhereItIsSmall) {
  for (const float x : {-80.0f, -20.0f, -1.0f, 0.0f, 1.0f, 20.0f, 80.0f})
    EXPECT_NEAR(sigmoid(x) * (1 + std::exp(-static_cast<double>(x))), 1.0, 1e-6) << x;
}

TEST(FastTanh, IsWithinTwoRoundingsOfOneAndReachesItsBounds) {
  for (float x = -12; x < 12; x += 0.0137f)
    EXPECT_NEAR(fast_tanh(x), std::tanh(static_cast<double>(x)), 0x1p-22) << x;
  EXPECT_EQ(fast_tanh(0), 0);
  EXPECT_EQ(fast_tanh(200), 1);
  EXPECT_EQ(fast_tanh(-200), -1);
}

}  // namespace
}  // namespace alpa
