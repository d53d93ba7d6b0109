#include "libalpa/planner/gradient_buckets.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/base/philox.h"
#include "libalpa/plan/reduced_gradients.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// The batch of four split over four devices; messages take next to nothing but a start.
Plan data_parallel(const std::string& sync, const std::string& overlap = "none") {
  PlannerOptions options;
  options.method = "data-parallel";
  options.micro_batches = 1;
  options.sync = sync;
  options.overlap = overlap;
  Cluster cluster = small_cluster(4);
  cluster.within_node = {1e-4, 1e10};
  return plan_quietly(small_model(), cluster, options);
}

std::vector<ReducedGradient> sums_of(const Plan& plan, const GraphUses& uses, MeshIndex mesh = 0_m) {
  const Placement placement(plan, uses);
  return reduced_gradients(placement, mesh, Conversions(plan.cluster, plan.meshes[mesh]));
}

/// [bucket] its sums, in the order in which the backward is done with them.
std::map<int, std::vector<ReducedGradient>> buckets_of(const Plan& plan, const GraphUses& uses) {
  std::map<ValueIndex, int> bucket_of;
  for (const GradientSync& sync : plan.sync) bucket_of[sync.sum] = sync.bucket;
  std::map<int, std::vector<ReducedGradient>> buckets;
  for (const ReducedGradient& sum : sums_of(plan, uses))
    if (bucket_of.contains(sum.sum)) buckets[bucket_of.at(sum.sum)].push_back(sum);
  return buckets;
}

class GradientBuckets : public testing::Test {
 protected:
  Graph graph_ = tiny_gpt(8);
  GraphUses uses_{graph_};
};

TEST_F(GradientBuckets, AreNoneWhereEachSumIsAddedUpByItself) {
  const Plan plan = data_parallel("each");
  EXPECT_TRUE(plan.sync.empty());
  EXPECT_GT(sums_of(plan, uses_).size(), 10u);
}

TEST_F(GradientBuckets, HaveSumsInTheOrderInWhichTheBackwardIsDoneWithThem) {
  const Plan plan = data_parallel("each");
  const std::vector<ReducedGradient> sums = sums_of(plan, uses_);
  const auto layer_of = [&](const ReducedGradient& sum) {
    return node_of(graph_, value_of(graph_, sum.sum).producer).layer;
  };
  for (std::size_t i = 1; i < sums.size(); ++i) EXPECT_GE(layer_of(sums[i - 1]), layer_of(sums[i]));
  EXPECT_GT(layer_of(sums.front()), layer_of(sums.back()));
}

TEST_F(GradientBuckets, AreFilledUpToTheirSize) {
  Plan plan = data_parallel("each");
  const std::vector<ReducedGradient> sums = sums_of(plan, uses_);
  constexpr std::int64_t first_bytes = 1024, bytes = 8192;
  plan.sync = SumsForBuckets(plan, uses_).in_buckets({bytes, first_bytes, false});
  EXPECT_NO_THROW(check_plan(plan, graph_));
  // What is added up at once, one sum or more.
  std::map<ValueIndex, int> bucket_of;
  for (const GradientSync& sync : plan.sync) bucket_of[sync.sum] = sync.bucket;
  std::vector<std::vector<ReducedGradient>> together;
  for (const ReducedGradient& sum : sums) {
    const bool goes_on = !together.empty() && bucket_of.contains(sum.sum) &&
                         bucket_of.contains(together.back().back().sum) &&
                         bucket_of.at(sum.sum) == bucket_of.at(together.back().back().sum);
    if (!goes_on) together.emplace_back();
    together.back().push_back(sum);
  }
  const auto bytes_of = [](const std::vector<ReducedGradient>& of) {
    std::int64_t held = 0;
    for (const ReducedGradient& sum : of) held += buffer_bytes(sum.tile);
    return held;
  };
  std::set<int> buckets;
  for (std::size_t i = 0; i < together.size(); ++i) {
    const std::int64_t most = i == 0 ? first_bytes : bytes;
    if (together[i].size() > 1) {
      EXPECT_LE(bytes_of(together[i]), most);
      EXPECT_TRUE(buckets.insert(bucket_of.at(together[i].front().sum)).second);  // one run each
    }
    if (i + 1 < together.size()) {  // the next does not fit any more
      EXPECT_GT(bytes_of(together[i]) + buffer_bytes(together[i + 1].front().tile), most);
    }
  }
  EXPECT_GT(buckets.size(), 1u);
}

// PyTorch's DistributedDataParallel closes a bucket when it has its bytes, not before it would have more.
TEST_F(GradientBuckets, MayBeClosedOnceTheyHaveTheirSize) {
  Plan plan = data_parallel("each");
  const std::vector<ReducedGradient> sums = sums_of(plan, uses_);
  constexpr std::int64_t bytes = 4096;
  plan.sync = SumsForBuckets(plan, uses_).in_buckets({bytes, 0, true});
  const auto buckets = buckets_of(plan, uses_);
  ASSERT_GT(buckets.size(), 1u);
  for (const auto& [bucket, members] : buckets) {
    std::int64_t before_last = 0;
    for (std::size_t i = 0; i + 1 < members.size(); ++i) before_last += buffer_bytes(members[i].tile);
    EXPECT_LT(before_last, bytes);
    if (members.back().sum != sums.back().sum) {
      EXPECT_GE(before_last + buffer_bytes(members.back().tile), bytes);
    }
  }
}

TEST_F(GradientBuckets, HoldEverythingWhereAllIsAddedUpAtOnce) {
  const Plan plan = data_parallel("one");
  const auto buckets = buckets_of(plan, uses_);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets.at(0).size(), sums_of(plan, uses_).size());
  EXPECT_EQ(plan.sync.size(), buckets.at(0).size());
}

std::vector<int> axes_of(const ReducedGradient& sum) {
  std::vector<int> axes;
  for (const ConversionStep& step : sum.steps) axes.push_back(step.axis);
  return axes;
}

TEST_F(GradientBuckets, HaveNoSumThatIsAddedUpOverOtherAxes) {
  // The first stage splits samples over both axes, the second over one, so their sums are over other axes.
  Plan plan = pinned(R"(
[[stage]]
layers = 2
mesh = [2, 2]
axes = ["data", "data"]
state_sharding = "none"
[[stage]]
layers = 2
mesh = [2, 2]
axes = ["data", "tensor"]
state_sharding = "none"
)",
                     small_cluster(8))
                  .plan;
  plan.sync = SumsForBuckets(plan, uses_).in_buckets(find_buckets("one"));
  EXPECT_NO_THROW(check_plan(plan, graph_));
  std::map<int, std::set<std::pair<MeshIndex, std::vector<int>>>> of_buckets;
  std::set<std::vector<int>> all;
  std::map<ValueIndex, int> bucket_of;
  for (const GradientSync& sync : plan.sync) bucket_of[sync.sum] = sync.bucket;
  for (const MeshIndex m : plan.meshes.indices())
    for (const ReducedGradient& sum : sums_of(plan, uses_, m)) {
      all.insert(axes_of(sum));
      if (bucket_of.contains(sum.sum)) of_buckets[bucket_of.at(sum.sum)].insert({m, axes_of(sum)});
    }
  EXPECT_GE(all.size(), 2u);
  EXPECT_GE(of_buckets.size(), 2u);
  for (const auto& [bucket, kinds] : of_buckets) EXPECT_EQ(kinds.size(), 1u) << bucket;

  Plan mixed = plan;
  for (GradientSync& sync : mixed.sync) sync.bucket = 0;
  EXPECT_THROW(check_plan(mixed, graph_), Error);
  Plan torn = plan;
  torn.sync.front().turn = 1;
  EXPECT_THROW(check_plan(torn, graph_), Error) << "the others of its bucket have another turn";
  for (GradientSync& sync : torn.sync) sync.turn = 1 + sync.bucket;
  EXPECT_NO_THROW(check_plan(torn, graph_));
  torn.sync.front() = {torn.sync.front().sum, -1, 0};
  EXPECT_THROW(check_plan(torn, graph_), Error) << "it says nothing of that sum";
}

TEST_F(GradientBuckets, TakeLessTimeThanManySumsWhereMessagesAreSlowToStart) {
  const double each = data_parallel("each").prediction.step_s, one = data_parallel("one").prediction.step_s;
  EXPECT_LT(one, each);
  // An all-reduce over four devices is six messages long; of 28 KiB it is gathered at once, in two.
  const auto sums = static_cast<double>(sums_of(data_parallel("each"), uses_).size());
  EXPECT_GT(each - one, (sums - 3) * 2 * 1e-4);
}

TEST_F(GradientBuckets, OfThePlannersChoiceAreTheFastest) {
  for (const std::string overlap : {"none", "all"}) {
    const double chosen = data_parallel(kFastestSync, overlap).prediction.step_s;
    double best = infinity;
    for (const Word<BucketSizes>& word : bucket_words())
      best = std::min(best, data_parallel(std::string(word.name), overlap).prediction.step_s);
    EXPECT_LE(chosen, best) << overlap;
  }
}

/// When the last of them is added up, one after another.
double finish_s(const std::vector<ReadySum>& sums, const std::vector<int>& bucket,
                const std::function<double(std::int64_t)>& seconds) {
  double finish = 0;
  for (std::size_t first = 0, end; first < sums.size(); first = end) {
    double ready = 0;
    std::int64_t bytes = 0;
    for (end = first; end < sums.size() && bucket[end] == bucket[first]; ++end) {
      ready = std::max(ready, sums[end].ready_s);
      bytes += sums[end].bytes;
    }
    finish = std::max(finish, ready) + seconds(bytes);
  }
  return finish;
}

TEST(SoonestBuckets, AreTheBestOfAllThereAre) {
  const std::vector<std::function<double(std::int64_t)>> costs{
      [](std::int64_t bytes) { return 3 + 0.1 * static_cast<double>(bytes); },
      [](std::int64_t bytes) {
        return bytes < 24 ? 1 : 9 + 0.05 * static_cast<double>(bytes);
      },  // dearer at once
      [](std::int64_t bytes) { return 0.3 * static_cast<double>(bytes); }};
  const auto drawn = [](std::uint64_t index, float below) {
    return static_cast<std::int64_t>(below * philox_uniform_at(7, 0, index));
  };
  std::uint64_t next = 0;
  for (std::size_t count = 1; count <= 12; ++count)
    for (const auto& seconds : costs) {
      std::vector<ReadySum> sums;
      double ready = 0;
      for (std::size_t i = 0; i < count; ++i) {
        ready += static_cast<double>(drawn(next++, 4));
        sums.push_back({ready, 1 + drawn(next++, 20)});
      }
      double best = infinity;
      for (std::uint32_t cuts = 0; cuts < (1u << (count - 1)); ++cuts) {
        std::vector<int> bucket(count);
        for (std::size_t i = 1; i < count; ++i)
          bucket[i] = bucket[i - 1] + static_cast<int>(cuts >> (i - 1) & 1);
        best = std::min(best, finish_s(sums, bucket, seconds));
      }
      EXPECT_DOUBLE_EQ(finish_s(sums, soonest_buckets(sums, seconds), seconds), best) << count;
    }
}

TEST_F(GradientBuckets, AreRefusedWhereNoCollectiveCanAddThemUp) {
  const Plan plan = data_parallel("one");
  const auto message = [&](const auto& change) -> std::string {
    Plan other = plan;
    change(other);
    try {
      check_plan(other, graph_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return error.happened();
    }
    return "";
  };
  EXPECT_EQ(message([](Plan& p) { p.sync[0].sum = ValueIndex(0); }),
            "value 0 is in bucket 0, but no sum of gradients that devices add up in place");
  EXPECT_EQ(message([](Plan& p) { p.sync[0].sum = ValueIndex(1 << 20); }),
            "value 1048576 is in bucket 0, but no sum of gradients that devices add up in place");
  const ValueIndex twice = plan.sync[1].sum;
  EXPECT_EQ(message([](Plan& p) { p.sync[2] = p.sync[1]; }),
            "sum of gradients " + std::to_string(twice) + " is in a bucket twice, or out of order");
  EXPECT_EQ(message([](Plan& p) { p.sync.back().bucket = 2; }), "there is a bucket 2, but none 1");
  EXPECT_EQ(message([](Plan& p) { p.sync.back().bucket = 1; }),
            "bucket 1 has one sum of gradients, expected two or more");
  EXPECT_THROW(find_buckets("parameter-server"), Error);
}

}  // namespace
}  // namespace alpa
