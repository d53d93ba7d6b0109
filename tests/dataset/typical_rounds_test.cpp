#include "libalpa/dataset/typical_rounds.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/dataset/graph_statistics.h"

namespace alpa {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr GraphLimits kTrees{.vocabulary = 20'000, .classes = 5, .children = 2};

std::vector<std::int64_t> rounds_of(const std::string& data, std::int64_t group, BatchingPolicy policy) {
  return typical_rounds(*open_graphs(data, kTrees), {group, group, kTrees.children}, {policy});
}

TEST(TypicalRounds, OfSamplesOfOneFormAreThoseOfAnyGroup) {
  EXPECT_THAT(rounds_of("complete-trees:8:40", 4, BatchingPolicy::frontier), ElementsAre(32, 16, 8, 4));
  EXPECT_THAT(rounds_of("complete-trees:4:40", 2, BatchingPolicy::per_sample), ElementsAre(4, 2, 1, 4, 2, 1));
  const std::vector<std::int64_t> serial = rounds_of("complete-trees:4:40", 2, BatchingPolicy::serial);
  EXPECT_EQ(serial.size(), 14u);
  EXPECT_THAT(serial, Each(1));
}

TEST(TypicalRounds, HaveTheRowsAndTheNumberOfRoundsOfMeanGroups) {
  const std::unique_ptr<GraphSource> source = open_graphs("synthetic-trees:2000", kTrees);
  const GraphStatistics statistics = graph_statistics(*source);
  const std::vector<std::int64_t> rounds = typical_rounds(*source, {16, 16, 2}, {});
  const auto rows = static_cast<double>(std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}));
  // Of 1024 samples: the mean of 37 vertices, which vary by half, is known to a 60th, four times over.
  EXPECT_NEAR(rows / 16, statistics.mean_vertices(), statistics.mean_vertices() / 15);
  // 64 numbers of rounds vary by 3 or so.
  EXPECT_NEAR(static_cast<double>(rounds.size()), statistics.mean_rounds(16), 2);
  EXPECT_NEAR(static_cast<double>(rounds[0]) / rows, statistics.level_share(0), 0.01);
}

// Sorted, groups have the rows that they have anyhow, in fewer rounds.
TEST(TypicalRounds, AreFewerWhereSamplesAreSortedByHeight) {
  const std::unique_ptr<GraphSource> source = open_graphs("synthetic-trees:2000", kTrees);
  const DrawnSteps steps{256, 16, 2};
  const auto drawn = typical_rounds(*source, steps, {}), sorted = typical_rounds(*source, steps, {{}, true});
  const auto rows_of = [](const std::vector<std::int64_t>& rounds) {
    return static_cast<double>(std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}));
  };
  EXPECT_NEAR(rows_of(sorted), rows_of(drawn), rows_of(drawn) / 10);
  // Groups of one height have as many rounds as samples by themselves.
  EXPECT_LT(static_cast<double>(sorted.size()), graph_statistics(*source).mean_rounds(1) + 1.5);
  EXPECT_GT(drawn.size(), sorted.size() + 4);
}

TEST(TypicalRounds, OfPaddedChainsHaveARowOfEachSample) {
  const std::unique_ptr<GraphSource> source = open_graphs("chains:500", kTrees);
  const auto rounds = typical_rounds(*source, {8, 8, 2}, {BatchingPolicy::padded});
  EXPECT_EQ(rounds[0], 8);
  EXPECT_EQ(rounds[1], 8);
}

}  // namespace
}  // namespace alpa
