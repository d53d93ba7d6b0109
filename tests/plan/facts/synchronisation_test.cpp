#include "libalpa/plan/facts/synchronisation.h"

#include <gmock/gmock.h>

#include <set>

#include "libalpa/plan/facts/plan_facts.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

/// Products of 8 features with one weight after another.
Graph products(std::int64_t samples, const TrainingOptions& options = {}) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  for (const char* name : {"first", "second"}) {
    g.begin_layer(name);
    x = g.add("gelu", {linear(g, x, std::string(name) + ".weight")});
  }
  g.graph().loss = g.add("reduce_sum", {x});
  return training_graph(g.finish(), op_catalog(), options);
}

/// All ways in which gradients of its first stage get to their updates.
std::set<std::string> ways_of(const Plan& plan, const Graph& graph) {
  const PlanFacts facts = plan_facts(plan, graph);
  std::set<std::string> texts;
  for (const LayoutGroup& group : facts.stages[0].tensors.synchronisation) texts.insert(group.layout);
  return texts;
}

/// Those of a plan of the tiny GPT on four devices.
std::set<std::string> ways(const std::string& method, const std::string& sync = "each",
                           const Cluster& cluster = small_cluster(4)) {
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 1;
  options.sync = sync;
  const Plan plan = plan_quietly(small_model(), cluster, options);
  return ways_of(plan, tiny_gpt(8));
}

TEST(Synchronisation, OfDataParallelismIsAnAllReduce) {
  EXPECT_THAT(ways("data-parallel"), Contains("all-reduce over 4 devices (axis 0)"));
  EXPECT_THAT(ways("data-parallel", "one"), Contains("all-reduce over 4 devices (axis 0), in a bucket"));
  EXPECT_THAT(ways("data-parallel"), Each(testing::Not(HasSubstr("bucket"))));
}

TEST(Synchronisation, OfTiedWeightsIsThatOfTheirSum) {
  // Of each device's samples all gradients are terms of sums, so none is there without.
  EXPECT_THAT(ways("data-parallel"), Each(HasSubstr("all-reduce over 4 devices (axis 0)")));
  EXPECT_THAT(ways("data-parallel"), Contains("added to another, all-reduce over 4 devices (axis 0)"));
}

TEST(Synchronisation, OfShardedStatesIsAReduceScatter) {
  EXPECT_THAT(ways("zero-2"), Contains(HasSubstr("reduce-scatter over 4 devices (axis 0)")));
}

TEST(Synchronisation, IsNoneWhereADeviceHasAllOfASum) {
  EXPECT_EQ(ways("serial"), std::set<std::string>{"no communication"});
}

/// Of the products, on four devices so fast, and with links so slow, that nothing but bytes counts.
std::set<std::string> ways_by_bytes(const std::string& method, const TrainingOptions& training = {}) {
  Cluster cluster = small_cluster(4);
  cluster.f32_flops_per_s = cluster.memory_bytes_per_s = 1e18;
  cluster.within_node = {1e-6, 1e3};
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 1;
  options.sync = "each";
  const auto graph = [&](std::int64_t samples) { return products(samples, training); };
  return ways_of(plan_quietly({"products", "", 4, graph}, cluster, options), graph(4));
}

TEST(Synchronisation, MayBeThatOfTheFactorsOfAGradient) {
  EXPECT_THAT(ways_by_bytes("poseidon"), Contains("made by all 4 devices of gathered factors (axis 0)"));
}

TEST(Synchronisation, MayBeThatOfFactorsOfLowRank) {
  TrainingOptions training;
  training.gradient_compression = GradientCompression::powersgd;
  training.compression_rank = 1;
  const std::string sum =  // an all-reduce in two
      "reduce-scatter over 4 devices (axis 0), all-gather over 4 devices (axis 0)";
  EXPECT_THAT(ways_by_bytes("data-parallel", training), Each("as factors of rank 1, " + sum + ", " + sum));
}

TEST(Synchronisation, SaysThatItComesAStepLater) {
  TrainingOptions training;
  training.gradient_delay = 1;
  EXPECT_THAT(ways_by_bytes("data-parallel", training), Each(testing::StartsWith("a step later, reduce-")));
}

}  // namespace
}  // namespace alpa
