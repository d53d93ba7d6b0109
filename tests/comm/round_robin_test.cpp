#include "libalpa/comm/round_robin.h"

#include <gmock/gmock.h>

#include <set>
#include <utility>

namespace alpa {
namespace {

TEST(Tournament, EveryPairMeetsOnceWithAtMostOnePartnerARound) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    std::multiset<std::pair<int, int>> met;
    for (int round = 0; round < round_robin_rounds(ranks); ++round)
      for (int rank = 0; rank < ranks; ++rank) {
        const int partner = round_robin_partner(rank, round, ranks);
        if (partner < 0) continue;
        ASSERT_LT(partner, ranks);
        ASSERT_NE(partner, rank);
        EXPECT_EQ(round_robin_partner(partner, round, ranks), rank) << ranks << " ranks, round " << round;
        if (rank < partner) met.insert({rank, partner});
      }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(ranks * (ranks - 1) / 2)) << ranks << " ranks";
    for (const auto& pair : met) EXPECT_EQ(met.count(pair), 1u) << pair.first << " and " << pair.second;
  }
}

TEST(Tournament, TakesTheFewestRounds) {
  EXPECT_EQ(round_robin_rounds(1), 0);
  EXPECT_EQ(round_robin_rounds(2), 1);
  EXPECT_EQ(round_robin_rounds(3), 3);
  EXPECT_EQ(round_robin_rounds(8), 7);
}

}  // namespace
}  // namespace alpa
