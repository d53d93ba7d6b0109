// A search that takes what was solved before finds the plan that it finds without.
#include <gmock/gmock.h>

#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/plan_search.h"
#include "libalpa/solver/selection/selection_cache.h"
#include "tests/support/measured_profile.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

class CachedSearch : public testing::Test {
 protected:
  CachedSearch() { options_.threads = 1; }

  Plan plan(const CostModel& costs, SelectionCache* cache) const {
    Log log("test", LogLevel::off);
    PlannerOptions options = options_;
    options.cache = cache;
    return search_plan(small_model(), costs, options, log);
  }

  /// With what is in the cache, of which some, but not all, is of use.
  void expect_the_same_after_a_change(const CostModel& costs) {
    const SelectionCache::Use before = cache_.use();
    EXPECT_EQ(plan(costs, &cache_), plan(costs, nullptr));
    EXPECT_GT(cache_.use().found, before.found);
    EXPECT_GT(cache_.use().added, before.added);
  }

  PlannerOptions options_;
  SelectionCache cache_;
};

TEST_F(CachedSearch, FindsTheSamePlanColdAndWarmWithAnyThreads) {
  const CostModel costs(small_cluster(4));
  const Plan without = plan(costs, nullptr);
  EXPECT_EQ(plan(costs, &cache_), without);
  const std::int64_t added = cache_.use().added;
  EXPECT_GT(added, 0);
  for (const int threads : {1, 3}) {
    options_.threads = threads;
    EXPECT_EQ(plan(costs, &cache_), without) << threads;
  }
  EXPECT_EQ(cache_.use().added, added);
  SelectionCache by_threads;
  EXPECT_EQ(plan(costs, &by_threads), without);
}

TEST_F(CachedSearch, FindsTheSamePlanWithOtherMemory) {
  Cluster cluster = small_cluster(4);
  plan(CostModel(cluster), &cache_);
  cluster.memory_bytes = cluster.memory_bytes * 9 / 10;
  expect_the_same_after_a_change(CostModel(cluster));
}

TEST_F(CachedSearch, FindsTheSamePlanOnFewerDevices) {
  const CostModel costs(small_cluster(8));
  plan(costs, &cache_);
  options_.devices = 4;
  expect_the_same_after_a_change(costs);
}

TEST_F(CachedSearch, FindsTheSamePlanUnderAConstraint) {
  const CostModel costs(small_cluster(4));
  plan(costs, &cache_);
  options_.constraints = parse_constraints("most_stages = 1\n", "limits.toml");
  expect_the_same_after_a_change(costs);
}

TEST_F(CachedSearch, FindsTheSamePlanWithAnotherEffort) {
  const CostModel costs(small_cluster(4));
  options_.effort = PlannerEffort::quick;
  plan(costs, &cache_);
  options_.effort = PlannerEffort::normal;
  expect_the_same_after_a_change(costs);
}

TEST_F(CachedSearch, FindsTheSamePlanWhereOneOperatorTakesLonger) {
  options_.micro_batches = 4;
  const Lowered lowered = two_stages_of_two();
  Profile profile = measured_profile(lowered.program, small_cluster(4), [](const auto&) { return 0.0; });
  plan(CostModel(profile), &cache_);
  profile.operators.begin()->second.median_s *= 1.5;
  EXPECT_EQ(plan(CostModel(profile), &cache_), plan(CostModel(profile), nullptr));
}

TEST_F(CachedSearch, FindsTheSamePlanAfterASearchThatWasCutShort) {
  const CostModel costs(small_cluster(4));
  options_.time_limit_s = 0;
  plan(costs, &cache_);
  options_.time_limit_s = 240;
  EXPECT_EQ(plan(costs, &cache_), plan(costs, nullptr));
}

}  // namespace
}  // namespace alpa
