#include "libalpa/planner/search/stage_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "libalpa/planner/search/stage_search.h"

namespace alpa {
namespace {

/// With as many micro-batches in flight as stages are left; some ways have no memory for so many. On nodes
/// of two devices, or on one, messages between which take longer.
StageChoices random_choices(std::uint32_t seed, int layers, int devices, unsigned updates = 200) {
  std::mt19937 draw(seed);
  const std::vector<int> sizes{1, 2, 4};
  std::vector<int> in_flight(static_cast<std::size_t>(std::min(layers, devices)) + 1);
  std::iota(in_flight.begin(), in_flight.end(), 0);
  StageChoices choices(layers, StagePlaces(devices, seed % 3 ? 2 : devices), sizes, in_flight);
  for (int first = 0; first < layers; ++first)
    for (int end = first + 1; end <= layers; ++end)
      for (const int size : sizes)
        for (int way = 0; way < 3; ++way) {
          const double work = 1.0 * (end - first) / size;
          const StageSeconds seconds{work * (1.0 + draw() % 50), work * (1.0 + draw() % 500),
                                     work * (draw() % updates)};
          const int most_in_flight = static_cast<int>(draw() % 7);
          for (const StageSides& sides : choices.places().all_sides(size, first == 0, end == layers)) {
            const double arriving = (sides.before_is_apart ? 3 : 0) + (sides.after_is_apart ? 5 : 0);
            choices.offer(first, end, size, sides,
                          {most_in_flight, seconds + StageSeconds{arriving, 10 * arriving, 0}, way});
          }
        }
  return choices;
}

void for_each_pipeline(const StageChoices& choices,
                       const std::function<void(const std::vector<StageSeconds>&)>& visit) {
  std::vector<StageSeconds> seconds;
  const std::function<void(int, int, int)> extend = [&](int left, int first, int devices) {
    if (left == 0) {
      if (first == choices.layers() && devices == 0) visit(seconds);
      return;
    }
    for (std::size_t s = 0; s < choices.sizes().size(); ++s)
      for (int end = first + 1; end <= choices.layers() && choices.sizes()[s] <= devices; ++end) {
        const StageSides sides = choices.places().sides(choices.sizes()[s], devices);
        for (const StageWay& way : choices.ways(first, end, s, sides)) {
          if (way.most_in_flight < left) continue;
          seconds.push_back(way.seconds);
          extend(left - 1, end, devices - choices.sizes()[s]);
          seconds.pop_back();
        }
      }
  };
  for (int stages = 1; stages <= choices.most_stages(); ++stages) extend(stages, 0, choices.devices());
}

/// The best for each number of stages, by looking at every partition.
std::map<int, double> by_enumeration(const StageChoices& choices) {
  std::map<int, double> best;
  for_each_pipeline(choices, [&](const std::vector<StageSeconds>& stages) {
    double& known = best.try_emplace(static_cast<int>(stages.size()), infinity).first->second;
    known = std::min(known, pipeline_seconds(stages));
  });
  return best;
}

TEST(BestPartitions, AreThoseThatEnumerationFinds) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const StageChoices choices = random_choices(seed, 5, 6, seed % 2 ? 20 : 2000);
    const std::map<int, double> expected = by_enumeration(choices);
    double best = std::numeric_limits<double>::infinity(), found_best = best;
    for (const auto& [stages, seconds] : expected) best = std::min(best, seconds);
    for (const Partition& found : best_partitions(choices, 1, 0)) {
      const double least = expected.at(static_cast<int>(found.stages.size()));
      EXPECT_GE(found.seconds, least * (1 - 1e-12)) << "seed " << seed;  // sums in another order
      found_best = std::min(found_best, found.seconds);
    }
    ASSERT_FALSE(expected.empty());
    EXPECT_NEAR(found_best, best, 1e-12 * best) << "seed " << seed;
  }
}

/// Estimates may be off by as much, so one of them may turn out to be the best.
TEST(BestPartitions, AreThoseOfEveryNumberOfStagesThatComesNearTheBest) {
  int near = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const StageChoices choices = random_choices(seed, 6, 4, 1);
    std::map<int, double> least;
    double best = infinity;
    for (const auto& [stages, seconds] : by_enumeration(choices)) best = std::min(best, seconds);
    for_each_pipeline(choices, [&](const std::vector<StageSeconds>& stages) {
      if (std::ranges::max(stages, {}, &StageSeconds::others).others > best) return;
      double& known = least.try_emplace(static_cast<int>(stages.size()), infinity).first->second;
      known = std::min(known, pipeline_seconds(stages));
    });
    const std::vector<Partition> found = best_partitions(choices, 1, 0);
    for (const auto& [count, seconds] : least) {
      if (seconds > 1.05 * best) continue;
      near += seconds > best;
      const auto same = std::ranges::find_if(
          found, [&](const Partition& each) { return std::cmp_equal(each.stages.size(), count); });
      ASSERT_NE(same, found.end()) << "seed " << seed << ", " << count << " stages";
      EXPECT_NEAR(same->seconds, seconds, 1e-12 * seconds) << "seed " << seed;
    }
  }
  EXPECT_GT(near, 10);
}

TEST(BestPartitions, LoseNoMoreThanCountsAsAlike) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const StageChoices choices = random_choices(seed, 6, 4);
    double best = std::numeric_limits<double>::infinity(), near = best;
    for (const Partition& found : best_partitions(choices, 1, 0)) best = std::min(best, found.seconds);
    for (const Partition& found : best_partitions(choices, 1, 0.05)) near = std::min(near, found.seconds);
    EXPECT_LE(near, best * 1.05 * 1.05)
        << "seed " << seed;  // of the slowest stage, and of the slowest update
  }
}

// Tables of several slowest stages are filled beside each other then, and some for nothing.
TEST(BestPartitions, AreTheSameWhateverTheThreads) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    const StageChoices choices = random_choices(seed, 9, 8);
    for (const double alike : {0.0, 0.05}) {
      const std::vector<Partition> by_one = best_partitions(choices, 1, alike);
      EXPECT_EQ(best_partitions(choices, 1, alike, {.threads = 2}), by_one) << "seed " << seed;
      EXPECT_EQ(best_partitions(choices, 1, alike, {.threads = 7}), by_one) << "seed " << seed;
    }
  }
}

TEST(NearPartitions, AreTheBestOfAllInTheirOrder) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const StageChoices choices = random_choices(seed, 4, 5, seed % 2 ? 20 : 2000);
    std::vector<double> all;
    for_each_pipeline(
        choices, [&](const std::vector<StageSeconds>& stages) { all.push_back(pipeline_seconds(stages)); });
    std::ranges::sort(all);
    const double most_s = 1.5 * all.front();
    std::vector<double> expected, found;
    for (const double seconds : all)
      if (seconds < most_s && expected.size() < 10) expected.push_back(seconds);
    for (const Partition& partition : near_partitions(choices, 1, most_s, 10)) {
      found.push_back(partition.seconds);
      std::vector<StageSeconds> stages;
      for (const Partition::Stage& stage : partition.stages) stages.push_back(stage.seconds);
      EXPECT_EQ(pipeline_seconds(stages), partition.seconds);
    }
    EXPECT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(BestPartitions, KeepTheLeastNumberOfStages) {
  const StageChoices choices = random_choices(1, 5, 6);
  for (const Partition& found : best_partitions(choices, 3)) EXPECT_GE(found.stages.size(), 3u);
}

}  // namespace
}  // namespace alpa
