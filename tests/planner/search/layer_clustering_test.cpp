#include "libalpa/planner/search/layer_clustering.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "tests/support/small_models.h"

namespace alpa {
namespace {

using testing::ElementsAre;

/// Whole numbers, so that sums are exact and ties are common.
Chain random_chain(std::uint32_t seed, std::size_t items) {
  std::mt19937 draw(seed);
  Chain chain;
  for (std::size_t i = 0; i < items; ++i) chain.work.push_back(1 + draw() % 6);
  chain.incoming_bytes.assign(items, std::vector<double>(items, 0));
  for (std::size_t first = 1; first < items; ++first)
    for (std::size_t last = first; last < items; ++last)
      chain.incoming_bytes[first][last] =
          (last > first ? chain.incoming_bytes[first][last - 1] : 1) + draw() % 3;
  return chain;
}

struct Score {
  double most_work = 0, most_bytes = 0, squares = 0;
};

Score score(const Chain& chain, const std::vector<int>& places) {
  Score score;
  for (std::size_t c = 0; c + 1 < places.size(); ++c) {
    double work = 0;
    for (int i = places[c]; i < places[c + 1]; ++i) work += chain.work[i];
    score.most_work = std::max(score.most_work, work);
    score.squares += work * work;
    score.most_bytes = std::max(score.most_bytes,
                                chain.incoming_bytes[places[c]][static_cast<std::size_t>(places[c + 1]) - 1]);
  }
  return score;
}

/// The best (bytes, squares) of all cuts with no more than this work, by looking at each; infinite where
/// there is none.
std::pair<double, double> by_enumeration(const Chain& chain, int count, double most_work) {
  std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
  const int items = static_cast<int>(chain.work.size());
  std::vector<int> places{0};
  const std::function<void()> extend = [&] {
    if (static_cast<int>(places.size()) == count) {
      places.push_back(items);
      const Score s = score(chain, places);
      if (s.most_work <= most_work) best = std::min(best, std::pair(s.most_bytes, s.squares));
      places.pop_back();
      return;
    }
    for (int next = places.back() + 1; next < items; ++next) {
      places.push_back(next);
      extend();
      places.pop_back();
    }
  };
  extend();
  return best;
}

TEST(ClusterChain, FindsWhatEnumerationFinds) {
  for (std::uint32_t seed = 0; seed < 60; ++seed)
    for (int count = 1; count <= 7; ++count) {
      const Chain chain = random_chain(seed, 7);
      double total = 0;
      for (const double work : chain.work) total += work;
      std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
      for (double imbalance = 0.5; best.first == std::numeric_limits<double>::infinity(); imbalance *= 2)
        best = by_enumeration(chain, count, (1 + imbalance) * total / count);
      const Score found = score(chain, cluster_chain(chain, count));
      EXPECT_EQ(std::pair(found.most_bytes, found.squares), best)
          << "seed " << seed << ", " << count << " clusters";
    }
}

TEST(ClusterChain, CutsEqualItemsEvenly) {
  Chain chain{std::vector<double>(12, 1.0),
              std::vector<std::vector<double>>(12, std::vector<double>(12, 8.0))};
  EXPECT_THAT(cluster_chain(chain, 3), ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(cluster_chain(chain, 1), ElementsAre(0, 12));
}

TEST(ClusterChain, CutsWhereLittleCrosses) {
  Chain chain{std::vector<double>(4, 1.0), std::vector<std::vector<double>>(4, std::vector<double>(4, 8.0))};
  chain.incoming_bytes[0] = {0, 0, 0, 0};
  chain.incoming_bytes[1] = {0, 1, 1, 1};  // before item 1; work 1 and 3: within half more than two each
  EXPECT_THAT(cluster_chain(chain, 2), ElementsAre(0, 1, 4));
  EXPECT_THAT(cluster_chain(chain, 2, 0.1), ElementsAre(0, 2, 4));
}

TEST(LayerChain, CountsEachCrossingValueOnce) {
  const Graph graph = testing_models::tiny_gpt(2);  // embedding, two blocks, head
  const Chain chain = layer_chain(graph);
  const double stream = 2 * 8 * 16 * 4;  // of the residual stream: samples, sequence, model, f32
  EXPECT_EQ(chain.incoming_bytes[1][1], stream);
  EXPECT_EQ(chain.incoming_bytes[1][3], stream);
  EXPECT_EQ(chain.incoming_bytes[3][3], stream);
  EXPECT_EQ(chain.incoming_bytes[0][3], 0);
  EXPECT_EQ(chain.work[1], chain.work[2]);
}

}  // namespace
}  // namespace alpa
