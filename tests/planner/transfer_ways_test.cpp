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
  for (const Word<TransferStrategy>& word : transfer_strategy_words()) {
    const Plan plan = over_three_nodes(std::string(word.name), three_nodes());
    ASSERT_FALSE(plan.transfers.empty());
    for (const PlannedTransfer& transfer : plan.transfers) EXPECT_EQ(transfer.way.strategy, word.value);
  }
}

TEST(TransferWays, AreTheFastestOfEachTransfer) {
  Cluster cluster = three_nodes();
  cluster.between_nodes = {1e-6, 1e8};  // slow, but without delay: what is sent once is sent fastest
  const Plan fastest = over_three_nodes(kFastestTransfers, cluster);
  for (const Word<TransferStrategy>& word : transfer_strategy_words()) {
    const Plan other = over_three_nodes(std::string(word.name), cluster);
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

/// The last of its layers has nearly all parameters, and is done first.
Graph growing(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  for (const std::int64_t to : {8, 8, 8, 4096}) {
    const std::string name = "layer." + std::to_string(g.graph().layers.size());
    g.begin_layer(name);
    const ValueIndex weight =
        g.state(name + ".weight", {DType::f32, {8, to}}, {Initializer::Kind::normal, 0.1}, true);
    x = g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}});
  }
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), {.gradient_clip = 1});
}

Plan with_updates(const std::string& updates, std::int64_t memory_bytes = 1 << 30) {
  PlannerOptions options;
  options.updates = updates;
  options.method = "inter-only";
  options.micro_batches = 8;
  options.schedule = "1f1b";
  Cluster cluster = small_cluster(4);
  cluster.memory_bytes = memory_bytes;
  cluster.within_node.latency_s = 1e-4;  // what gradients take to the first stage is time for an update
  return plan_quietly({"growing", "", 8, growing}, cluster, options);
}

TEST(UpdateOrder, OfThePlannersChoiceIsTheFastest) {
  const Plan after = with_updates("after-norm"), before = with_updates("before-norm");
  EXPECT_EQ(after.updates, UpdateOrder::after_norm);
  EXPECT_EQ(before.updates, UpdateOrder::before_norm);
  EXPECT_LT(before.prediction.step_s, after.prediction.step_s);
  const Plan next = with_updates("next-forward"), chosen = with_updates(kFastestUpdates);
  EXPECT_EQ(next.updates, UpdateOrder::next_forward);
  EXPECT_DOUBLE_EQ(chosen.prediction.step_s, std::min(before.prediction.step_s, next.prediction.step_s));
}

TEST(UpdateOrder, IsNotBeforeTheNormWhereThereIsNoMemoryForCopies) {
  const auto most = [](const Plan& plan) {
    std::int64_t bytes = 0;
    for (const MeshPrediction& mesh : plan.prediction.meshes) bytes = std::max(bytes, mesh.memory.total);
    return bytes;
  };
  const std::int64_t enough = most(with_updates("after-norm"));
  ASSERT_LT(enough, most(with_updates("before-norm")));
  EXPECT_NE(with_updates(kFastestUpdates, enough).updates, UpdateOrder::before_norm);
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
