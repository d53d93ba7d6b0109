#include "libalpa/sampler/choose_token.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace alpa {
namespace {

// Likelihoods 0.5, 0.25, 0.125, 0.125, not in their order.
const std::vector<float> kScores{std::log(0.25f), std::log(0.125f), std::log(0.5f), std::log(0.125f)};

/// How often each word is drawn by 1000 numbers spread evenly.
std::map<std::int32_t, int> drawn(const TokenChoice& choice) {
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < 1000; ++i) ++counts[choose_token(kScores, choice, (i + 0.5) / 1000)];
  return counts;
}

TEST(ChooseToken, TakesTheLikeliestAtTemperature0AndTheFirstOfEqualOnes) {
  EXPECT_EQ(choose_token(kScores, {.temperature = 0}, 0.999), 2);
  EXPECT_EQ(choose_token(std::vector<float>{1, 3, 3, 2}, {.temperature = 0}, 0.999), 1);
}

TEST(ChooseToken, DrawsByLikelihood) {
  EXPECT_EQ(drawn({}), (std::map<std::int32_t, int>{{2, 500}, {0, 250}, {1, 125}, {3, 125}}));
}

// Likelihoods to the power of 1 / temperature: 4/16 : 1/16 ... of squares are 16 : 4 : 1 : 1 of 22.
TEST(ChooseToken, SharpensBelowTemperature1) {
  EXPECT_EQ(drawn({.temperature = 0.5}), (std::map<std::int32_t, int>{{2, 728}, {0, 182}, {1, 45}, {3, 45}}));
}

TEST(ChooseToken, LeavesOutTheUnlikely) {
  EXPECT_EQ(drawn({.top_k = 2}), (std::map<std::int32_t, int>{{2, 667}, {0, 333}}));
  EXPECT_EQ(drawn({.top_p = 0.5}), (std::map<std::int32_t, int>{{2, 1000}}));
  EXPECT_EQ(drawn({.top_p = 0.6}), (std::map<std::int32_t, int>{{2, 667}, {0, 333}}));
  EXPECT_EQ(drawn({.top_p = 0}), (std::map<std::int32_t, int>{{2, 1000}})) << "one word is always left";
  // Of those that top_k leaves, 0.5 and 0.25, the first has two thirds.
  EXPECT_EQ(drawn({.top_p = 0.66, .top_k = 2}), (std::map<std::int32_t, int>{{2, 1000}}));
}

TEST(ChooseToken, KnowsHowLikelyAWordIs) {
  EXPECT_NEAR(log_likelihood(kScores, 1), std::log(0.125), 1e-6);
  EXPECT_NEAR(log_likelihood(std::vector<float>{1000, 1000}, 0), std::log(0.5), 1e-6);
}

}  // namespace
}  // namespace alpa
