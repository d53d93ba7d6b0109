#include "libalpa/planner/gradient_owners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "libalpa/plan/owned_updates.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// A parameter's sum that has owners; of tied weights the last, or what their terms are added up to first. In
/// the order in which the backward is done with them.
struct OwnedSum {
  std::string name;
  std::int64_t rows = 0, row_bytes = 0;
  int bucket = -1;
  std::vector<OwnedRows> owners;
  std::int64_t bytes() const { return rows * row_bytes; }
};

class GradientOwners : public testing::TestWithParam<int> {
 protected:
  std::vector<OwnedSum> by(OwnerRule rule, const std::string& sync = "each", int parts = 0) const {
    PlannerOptions options;
    options.method = "data-parallel";
    options.micro_batches = 1;
    options.sync = sync;
    Plan plan = plan_quietly(small_model(), small_cluster(GetParam()), options);
    const Graph graph = tiny_gpt(plan.micro_batch_samples);
    const GraphUses uses(graph);
    plan.sync = with_owners(plan, uses, rule, parts);
    check_plan(plan, graph);
    const Placement placement(plan, uses);
    std::vector<ValueIndex> in_order;
    for (const ReducedGradient& sum :
         converted_gradients(placement, 0_m, Conversions(plan.cluster, plan.meshes[0_m])))
      in_order.push_back(sum.sum);
    for (const GradientSync& made_in_update : plan.sync)
      if (std::ranges::count(in_order, made_in_update.sum) == 0) in_order.push_back(made_in_update.sum);
    std::vector<OwnedSum> sums;
    for (const ValueIndex sum : in_order) {
      const GradientSync sync_of = plan.sync_of(sum);
      if (sync_of.owners.empty()) continue;
      const auto& [name, type] = std::tie(value_of(graph, sum).name, value_of(graph, sum).type);
      if (const auto tied = std::ranges::find(sums, name, &OwnedSum::name); tied != sums.end()) {
        EXPECT_EQ(tied->owners, sync_of.owners) << name;
        sums.erase(tied);
      }
      sums.push_back({name, type.shape[0], byte_count(type) / type.shape[0], sync_of.bucket, sync_of.owners});
    }
    const auto is_of_table = [](const OwnedSum& sum) {
      return sum.name == "table.gradient" || sum.name == "sum of gradients";
    };
    EXPECT_EQ(std::ranges::count_if(sums, is_of_table), 1);
    EXPECT_EQ(std::ssize(sums), std::ranges::count_if(graph.states, &State::is_parameter))
        << "some have none";
    return sums;
  }

  /// [place] after that many sums.
  std::vector<std::int64_t> loads(const std::vector<OwnedSum>& sums, std::size_t count) const {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(GetParam()));
    for (std::size_t i = 0; i < count; ++i)
      for (const OwnedRows& part : sums[i].owners)
        bytes[static_cast<std::size_t>(part.owner)] += part.rows * sums[i].row_bytes;
    return bytes;
  }
};

TEST_P(GradientOwners, AreTheFirstDeviceForAll) {
  for (const OwnedSum& sum : by(OwnerRule::first))
    EXPECT_EQ(sum.owners, (std::vector<OwnedRows>{{sum.rows, 0}}));
}

TEST_P(GradientOwners, AreThoseWithTheFewestBytesSoFar) {
  const std::vector<OwnedSum> sums = by(OwnerRule::balanced);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(sums[i].owners.size(), 1u);
    const std::vector<std::int64_t> before = loads(sums, i);
    EXPECT_EQ(before[static_cast<std::size_t>(sums[i].owners[0].owner)], std::ranges::min(before));
  }
}

TEST_P(GradientOwners, HaveTheFewestEqualParts) {
  for (const OwnedSum& sum : by(OwnerRule::parts)) {
    const auto parts = std::ssize(sum.owners);
    for (const OwnedRows& part : sum.owners) EXPECT_EQ(part.rows * parts, sum.rows);
    for (std::int64_t fewer = 2; fewer < (parts == 1 ? GetParam() + 1 : parts); ++fewer)
      EXPECT_NE(sum.rows % fewer, 0) << fewer << " parts would do";
  }
}

TEST_P(GradientOwners, HaveTheFewestPartsThatAreNotEqual) {
  for (const OwnedSum& sum : by(OwnerRule::uneven)) {
    const auto parts = std::ssize(sum.owners);
    if (parts > 1) {
      EXPECT_NE(sum.rows % parts, 0);
      const auto [least, most] = std::ranges::minmax(sum.owners, {}, &OwnedRows::rows);
      EXPECT_EQ(most.rows - least.rows, 1);
    }
    for (std::int64_t fewer = 2; fewer < (parts == 1 ? GetParam() + 1 : parts); ++fewer)
      EXPECT_EQ(sum.rows % fewer, 0) << fewer << " parts would do";
  }
}

// More than devices too, so that each has several.
TEST_P(GradientOwners, HaveAsManyPartsAsWereAskedForAndThereAreRows) {
  for (const int parts : {1, 3, 2 * GetParam(), kMostOwnerParts})
    for (const OwnedSum& sum : by(OwnerRule::searched, "each", parts)) {
      EXPECT_EQ(std::ssize(sum.owners), std::min<std::int64_t>(parts, sum.rows));
      const auto [least, most] = std::ranges::minmax(sum.owners, {}, &OwnedRows::rows);
      EXPECT_LE(most.rows - least.rows, 1);
      EXPECT_GE(least.rows, 1);
    }
}

// Each cut between two shares is at most half a row from where it would be even; a share has two.
TEST_P(GradientOwners, HaveSharesOfABucketThatDifferByARowAtMost) {
  for (const std::string sync : {"each", "ddp", "one"}) {
    std::map<int, std::vector<OwnedSum>> buckets;
    int alone = 1000;
    for (const OwnedSum& sum : by(OwnerRule::even, sync))
      buckets[sum.bucket < 0 ? alone++ : sum.bucket].push_back(sum);
    for (const auto& [bucket, sums] : buckets) {
      const std::vector<std::int64_t> bytes = loads(sums, sums.size());
      const std::int64_t row = std::ranges::max(sums, {}, &OwnedSum::row_bytes).row_bytes;
      const double even =
          static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0})) / GetParam();
      for (const std::int64_t share : bytes)
        EXPECT_LE(std::abs(static_cast<double>(share) - even), static_cast<double>(row)) << sync;
    }
  }
}

TEST_P(GradientOwners, HaveTheNumberOfPartsThatIsTheFastest) {
  PlannerOptions options;
  options.method = "data-parallel";
  options.micro_batches = 1;
  options.owners = "searched";
  const auto step_s = [&](int parts) {
    options.owner_parts = parts;
    return plan_quietly(small_model(), small_cluster(GetParam()), options).prediction.step_s;
  };
  double least = infinity;
  for (int parts = 1; parts <= 8 * GetParam(); parts *= 2) least = std::min(least, step_s(parts));
  EXPECT_LE(step_s(0), least * (1 + 1e-9));
  for (const char* const other : {"none", "auto", "even"}) {
    options.owners = other;
    EXPECT_THROW(step_s(2), Error) << other;
  }
}

// Of servers that hold the states: small parameters whole, of the others to a row as many.
TEST(RowsAtServers, AreAsManyBytesAtEach) {
  PlannerOptions options;
  options.servers = 3;
  options.staleness = 1;
  Cluster cluster = small_cluster(1);
  cluster.nodes = 4;
  cluster.servers = options.servers;
  const Plan plan = plan_quietly(small_model(), cluster, options);
  const Graph graph = tiny_gpt(plan.micro_batch_samples);
  std::vector<std::int64_t> bytes(3);
  std::int64_t largest = 0;
  for (const GradientSync& sync : plan.sync) {
    const TensorType& type = value_of(graph, sync.sum).type;
    for (const OwnedRows& part : sync.owners) {
      const std::int64_t own = part.rows * byte_count(type) / type.shape[0];
      bytes[static_cast<std::size_t>(part.owner)] += own;
      largest = std::max(largest, own);
    }
  }
  EXPECT_LE(std::ranges::max(bytes) - std::ranges::min(bytes), largest);
}

INSTANTIATE_TEST_SUITE_P(Devices, GradientOwners, testing::Values(2, 4, 8));

}  // namespace
}  // namespace alpa
