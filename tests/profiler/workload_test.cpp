#include "libalpa/profiler/workload.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

Cluster cluster_of(int nodes, int devices_per_node) {
  return {"test", "CPU", nodes, devices_per_node, 1 << 30,    1e11, 1e11,
          0,      1e10,  1e-6,  {1e-6, 1e10},     {1e-5, 1e9}};
}

/// As if everything in the workload had been measured.
Profile measured(const Workload& work, const Cluster& cluster) {
  Profile profile;
  profile.cluster = cluster;
  for (const OperatorCase& each : work.operators)
    profile.operators[each.signature] = {1e-6, 0, 0, each.flops, each.bytes};
  for (const CollectiveCase& each : work.collectives)
    profile.collectives.push_back({each.kind, each.group, each.bytes, 1e-6});
  return profile;
}

std::vector<std::string> signatures(const Workload& work) {
  std::vector<std::string> texts;
  for (const OperatorCase& each : work.operators) texts.push_back(each.signature);
  return texts;
}

class PlansOf : public testing::TestWithParam<const char*> {};

// Planning asks for every strategy of every node, lowering for what it adds: both from the same profile.
TEST_P(PlansOf, AskForNothingThatTheWorkloadLacks) {
  const std::string method = GetParam();
  const Cluster cluster = cluster_of(1, method == "serial" ? 1 : 4);
  const std::vector<Graph> graphs{testing_models::tiny_gpt(4)};
  const CostModel costs(measured(workload(graphs, cluster), cluster));
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 2;
  const Plan plan =
      make_plan({"tiny", "", 8, [](std::int64_t samples) { return testing_models::tiny_gpt(samples); }},
                costs, options, log);
  const Graph graph = testing_models::tiny_gpt(plan.micro_batch_samples);
  simulate(lower(graph, plan), costs);
  simulate(lower(graph, plan, Purpose::evaluate), costs);
  EXPECT_THAT(costs.missing(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Methods, PlansOf,
                         testing::Values("search", "serial", "data-parallel", "zero-1", "zero-3", "megatron",
                                         "sequence", "inter-only"),
                         [](const auto& method) {
                           std::string name = method.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Workload, OfTheDefaultMicroBatchesHasAllThatTheWholeSearchAsksFor) {
  constexpr std::int64_t batch = 32;
  const Cluster cluster = cluster_of(1, 4);
  std::vector<Graph> graphs;
  for (const int count : micro_batch_counts(batch, most_profiled_micro_batches(cluster.devices())))
    graphs.push_back(testing_models::tiny_gpt(batch / count, 1));
  const CostModel costs(measured(workload(graphs, cluster), cluster));
  Log log("test", LogLevel::off);
  make_plan({"tiny", "", batch, [](std::int64_t samples) { return testing_models::tiny_gpt(samples, 1); }},
            costs, {}, log);
  EXPECT_THAT(costs.missing(), IsEmpty());
}

TEST(Workload, HasEachCaseOnceAndTheHeaviestFirst) {
  const std::vector<Graph> graphs{testing_models::tiny_gpt(8), testing_models::tiny_gpt(4)};
  const Workload work = workload(graphs, cluster_of(1, 2));
  std::vector<std::string> texts = signatures(work);
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
  const auto used_bytes = [](const OperatorCase& each) {
    return each.uses * each.bytes;
  };  // what bounds tiny operators
  EXPECT_GT(used_bytes(work.operators.front()), 10 * used_bytes(work.operators.back()));
}

TEST(Workload, HasTheLongestOperatorAsItsReference) {
  const std::vector<Graph> graphs{testing_models::tiny_gpt(4)};
  const Cluster cluster = cluster_of(1, 2);
  const Workload work = workload(graphs, cluster);
  for (const OperatorCase& each : work.operators)
    EXPECT_LE(each.least_seconds(cluster), work.reference->least_seconds(cluster)) << each.signature;
  EXPECT_THAT(signatures(work), testing::Contains(work.reference->signature));
}

TEST(Workload, OfAMatrixProductOnTwoDevicesIsWholeRowsColumnsAndInner) {
  const Graph graph = testing_models::tiny_gpt(8);
  std::vector<std::string> products;
  for (const std::string& text : signatures(workload(std::span(&graph, 1), cluster_of(1, 2))))
    if (text.starts_with("einsum equation='b s d, d f -> b s f'")) products.push_back(text.substr(38));
  EXPECT_THAT(products, testing::UnorderedElementsAre("f32[8x8x16] f32[16x64]", "f32[4x8x16] f32[16x64]",
                                                      "f32[8x4x16] f32[16x64]", "f32[8x8x8] f32[8x64]",
                                                      "f32[8x8x16] f32[16x32]"));
}

TEST(Workload, PlacesTilesWhereTheLastDeviceHasThem) {
  const Graph graph = testing_models::tiny_gpt(8);
  for (const OperatorCase& each : workload(std::span(&graph, 1), cluster_of(1, 2)).operators)
    if (each.signature.starts_with("attention causal=1 f32[8x4x4x4] f32[8x8x4x4]")) {
      EXPECT_EQ(each.operand_places[0].origin, (Shape{0, 4, 0, 0}));
      EXPECT_EQ(each.operand_places[1].origin, (Shape{0, 0, 0, 0}));
      EXPECT_EQ(each.result_places[0].origin, (Shape{0, 4, 0, 0}));
      return;
    }
  FAIL() << "no attention with its queries split";
}

TEST(Workload, HasTheCallOnKeysThatVisitTheLastDeviceWhichSeesAllOfThem) {
  const Graph graph = testing_models::tiny_gpt(8);
  for (const OperatorCase& each : workload(std::span(&graph, 1), cluster_of(1, 2)).operators)
    if (each.signature == "attention causal=1 visiting=1 f32[8x4x4x4] f32[8x4x4x4] f32[8x4x4x4]") {
      EXPECT_EQ(each.operand_places[0].origin, (Shape{0, 4, 0, 0}));
      EXPECT_EQ(each.operand_places[1].origin, (Shape{0, 0, 0, 0}));
      EXPECT_EQ(each.operand_places[2].origin, (Shape{0, 0, 0, 0}));
      EXPECT_EQ(each.flops, 4.0 * 8 * 4 * 4 * 4 * 4);  // nothing is masked
      return;
    }
  FAIL() << "no attention with its keys going round";
}

TEST(Workload, HasEachCollectiveOnEachShapeOfGroupUpToTheLargestTensor) {
  const Graph graph =
      testing_models::tiny_gpt(8);  // largest tensor: hidden activations, f32[8x8x64] = 16 KiB
  const std::vector<CollectiveCase> cases = workload(std::span(&graph, 1), cluster_of(2, 2)).collectives;
  for (const GroupShape group : {GroupShape{1, 2}, GroupShape{2, 1}, GroupShape{2, 2}})
    for (const std::int64_t bytes : {1 << 10, 1 << 12, 1 << 14}) {
      EXPECT_THAT(cases, Contains(CollectiveCase{CollectiveKind::all_gather, group, bytes}));
      EXPECT_THAT(cases, Contains(CollectiveCase{CollectiveKind::all_to_all, group, bytes}));
    }
  EXPECT_THAT(cases, Contains(CollectiveCase{CollectiveKind::send, {1, 2}, 1 << 14}));
  EXPECT_THAT(cases, Contains(CollectiveCase{CollectiveKind::send, {2, 1}, 1 << 14}));
  EXPECT_THAT(cases, Not(Contains(CollectiveCase{CollectiveKind::send, {2, 2}, 1 << 14})));
  // All gradients together: 34 KiB.
  EXPECT_THAT(cases, Contains(CollectiveCase{CollectiveKind::all_reduce, {2, 2}, 1 << 16}));
  EXPECT_EQ(cases.size(), (5u * 3 + 2) * 3 + 3);
}

TEST(Workload, OfOneDeviceHasNoCollective) {
  const Graph graph = testing_models::tiny_gpt(8);
  EXPECT_THAT(workload(std::span(&graph, 1), cluster_of(1, 1)).collectives, IsEmpty());
}

}  // namespace
}  // namespace alpa
