#include "libalpa/planner/best_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace alpa {
namespace {

/// Steps of P parts that are a curve b / P + a (P - 1) + c, as they were asked for.
struct Curve {
  double shared, of_part, rest;
  std::multiset<int> asked = {};
  double operator()(int parts) {
    asked.insert(parts);
    return shared / parts + of_part * (parts - 1) + rest;
  }
};

int least_of(Curve curve, int most) {
  int best = 1;
  for (int parts = 2; parts <= most; ++parts)
    if (curve(parts) < curve(best)) best = parts;
  return best;
}

TEST(BestParts, AreTheLeastOfTheCurveTheyFollow) {
  for (const double of_part : {1e-5, 1e-4, 1e-3, 1e-2})
    for (const int first : {1, 4, 16}) {
      Curve curve{1, of_part, 0.1};
      EXPECT_EQ(best_parts(first, 1024, std::ref(curve)), least_of(curve, 1024)) << of_part << ", " << first;
    }
}

TEST(BestParts, AreAskedForOnceEachAndFewOfThem) {
  Curve curve{1, 1e-4, 0.1};
  best_parts(4, 1024, std::ref(curve));
  EXPECT_EQ(curve.asked.size(), (std::set<int>(curve.asked.begin(), curve.asked.end()).size()));
  EXPECT_LE(curve.asked.size(), 9u);  // 4, 8, ..., 256 and the curve's
}

TEST(BestParts, AreTheBestTriedWhereNoCurveFits) {
  const auto prefers_eight = [](int parts) { return parts == 8 ? 1.0 : 2.0; };
  EXPECT_EQ(best_parts(4, 64, prefers_eight), 8);
  EXPECT_EQ(best_parts(16, 64, prefers_eight), 8);
  EXPECT_EQ(best_parts(1, 1, prefers_eight), 1);
}

TEST(BestParts, AreAtMostWhatThereMayBe) {
  const auto the_more_the_better = [](int parts) { return 1.0 / parts; };
  EXPECT_EQ(best_parts(4, 24, the_more_the_better), 24);
  EXPECT_EQ(best_parts(64, 24, the_more_the_better), 24);
}

}  // namespace
}  // namespace alpa
