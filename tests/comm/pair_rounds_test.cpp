#include "libalpa/comm/pair_rounds.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace alpa {
namespace {

using testing::ElementsAre;

TEST(PairRounds, HaveEachPairOnceAndEachRankInOnePairAtATime) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::vector<RankPair> all;
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if (from != to) all.emplace_back(from, to);
    std::multiset<RankPair> met;
    const std::vector<std::vector<RankPair>> rounds = pair_rounds(all);
    for (const std::vector<RankPair>& round : rounds) {
      std::set<int> there;
      for (const RankPair& pair : round) {
        EXPECT_TRUE(there.insert(pair.first).second) << pair.first << " twice of " << ranks;
        EXPECT_TRUE(there.insert(pair.second).second) << pair.second << " twice of " << ranks;
        met.insert(pair);
      }
    }
    EXPECT_EQ(met, std::multiset<RankPair>(all.begin(), all.end()));
    EXPECT_LT(rounds.size(), std::max<std::size_t>(1, 4 * (static_cast<std::size_t>(ranks) - 1)));
  }
}

// However many ranks there are.
TEST(PairRounds, OfARingAreFew) {
  std::vector<RankPair> ring;
  for (int rank = 0; rank < 500; ++rank) ring.emplace_back(rank, (rank + 1) % 500);
  EXPECT_LE(pair_rounds(ring).size(), 3u);
}

TEST(PairRounds, TakeEachPairAsEarlyAsItsRanksAreFree) {
  const std::vector<RankPair> there_and_back{{0, 1}, {1, 0}, {2, 3}, {3, 0}};
  EXPECT_THAT(pair_rounds(there_and_back),
              ElementsAre(ElementsAre(RankPair{0, 1}, RankPair{2, 3}), ElementsAre(RankPair{1, 0}),
                          ElementsAre(RankPair{3, 0})));
  EXPECT_TRUE(pair_rounds({}).empty());
}

}  // namespace
}  // namespace alpa
