#include "libalpa/planner/transfer_ways.h"

#include <gmock/gmock.h>

#include "libalpa/program/order/simulate.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// A stage of a node, split by samples, before one of two nodes, split by tensors.
Plan over_three_nodes(const std::string& transfers, const Cluster& cluster) {
  PlannerOptions options;
  options.transfers = transfers;
  return pinned(R"(
micro_batches = 4
schedule = "1f1b"
[[stage]]
layers = 2
mesh = [2]
axes = ["data"]
[[stage]]
layers = 2
mesh = [2, 2]
axes = ["tensor", "tensor"]
)",
                cluster, options)
      .plan;
}

Cluster three_nodes() {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 3;
  return cluster;
}

TEST(TransferWays, AreThoseThatWereAskedFor) {
  for (const TransferStrategyWord& word : transfer_strategy_words()) {
    const Plan plan = over_three_nodes(word.name, three_nodes());
    ASSERT_FALSE(plan.transfers.empty());
    for (const PlannedTransfer& transfer : plan.transfers) EXPECT_EQ(transfer.way.strategy, word.strategy);
  }
}

TEST(TransferWays, AreTheFastestOfEachTransfer) {
  Cluster cluster = three_nodes();
  cluster.between_nodes = {1e-6, 1e8};  // slow, but without delay: what is sent once is sent fastest
  const Plan fastest = over_three_nodes(kFastestTransfers, cluster);
  for (const TransferStrategyWord& word : transfer_strategy_words()) {
    const Plan other = over_three_nodes(word.name, cluster);
    EXPECT_LE(fastest.prediction.step_s, other.prediction.step_s * 1.01) << word.name;
    if (other.transfers.size() != fastest.transfers.size()) continue;
    for (std::size_t t = 0; t < fastest.transfers.size(); ++t) {
      if (fastest.transfers[t].layout != other.transfers[t].layout) continue;
      EXPECT_LE(fastest.prediction.transfers[t].seconds, other.prediction.transfers[t].seconds * 1.01)
          << word.name << ", transfer " << t;
    }
  }
  EXPECT_TRUE(std::ranges::any_of(fastest.transfers, [](const PlannedTransfer& transfer) {
    return transfer.way.strategy != TransferStrategy::send_receive;
  }));
}

TEST(TransferWays, ArePredictedWithTheBytesOfTheirMessages) {
  const Plan each = over_three_nodes("send-receive", three_nodes()),
             once = over_three_nodes("broadcast", three_nodes());
  ASSERT_EQ(each.prediction.transfers.size(), each.transfers.size());
  const auto into_second = [](const Plan& plan) {
    std::int64_t most = 0;
    for (std::size_t t = 0; t < plan.transfers.size(); ++t)
      if (plan.transfers[t].to_mesh == 1_m && plan.transfers[t].layout == replicated_spec(3))
        most = std::max(most, plan.prediction.transfers[t].bytes_between_nodes);
    return most;
  };
  // Activations of 2 samples, 8 x 16 of f32: to four devices, or once into each of two nodes.
  EXPECT_EQ(into_second(each), 4 * 2 * 8 * 16 * 4);
  EXPECT_EQ(into_second(once), 2 * 2 * 8 * 16 * 4);
}

TEST(Overlap, OfThePlannersChoiceIsTheFastest) {
  Cluster cluster = three_nodes();
  cluster.nodes = 2;
  cluster.between_nodes = {1e-5, 1e8};
  const auto step_s = [&](const std::string& overlap) {
    PlannerOptions options;
    options.overlap = overlap;
    options.method = "data-parallel";
    options.micro_batches = 1;
    const Plan plan = plan_quietly(small_model(), cluster, options);
    if (overlap != kFastestOverlap) {
      EXPECT_EQ(overlap_name(plan.overlap), overlap);
    }
    return plan.prediction.step_s;
  };
  EXPECT_LT(step_s("all"), step_s("none"));
  EXPECT_EQ(step_s(kFastestOverlap), std::min({step_s("none"), step_s("transfers"), step_s("all")}));
}

}  // namespace
}  // namespace alpa
