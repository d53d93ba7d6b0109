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
Graph products(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  for (const char* name : {"first", "second"}) {
    g.begin_layer(name);
    x = g.add("gelu", {linear(g, x, std::string(name) + ".weight")});
  }
  g.graph().loss = g.add("reduce_sum", {x});
  return training_graph(g.finish(), op_catalog(), {});
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

TEST(Synchronisation, MayBeThatOfTheFactorsOfAGradient) {
  Cluster cluster = small_cluster(4);  // so fast, and its links so slow, that nothing but bytes counts
  cluster.f32_flops_per_s = cluster.memory_bytes_per_s = 1e18;
  cluster.within_node = {0, 1e3};
  PlannerOptions options;
  options.method = "poseidon";
  options.micro_batches = 1;
  const Plan plan = plan_quietly({"products", "", 4, products}, cluster, options);
  EXPECT_THAT(ways_of(plan, products(4)), Contains("made by all 4 devices of gathered factors (axis 0)"));
}

}  // namespace
}  // namespace alpa
