// The second-best way of each parameter's gradient, beside all plans with that one changed, which are
// lowered and simulated here.
#include "libalpa/planner/tuning/runner_ups.h"

#include <gmock/gmock.h>

#include <cmath>

#include "libalpa/program/order/simulate.h"
#include "tests/planner/tuning/hidden_costs.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

constexpr double kSumRounding = 1e-9;  ///< seconds added up in another order

/// A data-parallel plan of two blocks on nodes of one device, whose sums are in no buckets.
struct OnNodes {
  explicit OnNodes(PlannerOptions options = without_buckets()) {
    cluster.devices_per_node = 1, cluster.nodes = 4;
    options.method = "data-parallel";
    options.micro_batches = 2;
    plan = plan_quietly(small_model(), cluster, options);
    graph = tiny_gpt(plan.micro_batch_samples);
  }

  /// A step of the plan with the parameters of that name, in whatever block, in that way.
  double step_s(const std::string& name, SyncWay way) const {
    const GraphUses uses(graph);
    const SyncWays ways(plan, uses);
    Plan changed = plan;
    for (const SyncVariable& variable : ways.variables())
      if (const std::string& of = graph.states[variable.parameter].name;
          of == name || (of.starts_with("block.") && of.substr(8) == name))
        ways.set(changed, variable, way);
    return simulate(lower(graph, changed), CostModel(cluster)).step_s;
  }

  Cluster cluster = small_cluster(4);
  Plan plan;
  Graph graph;
};

TEST(RunnersUp, AreTheFastestOfAllOtherWays) {
  const OnNodes on;
  const RunnersUp found = runners_up(on.plan, on.graph, CostModel(on.cluster), 2);
  EXPECT_NEAR(found.step_s, on.plan.prediction.step_s, kSumRounding * found.step_s);
  int checked = 0;
  for (const auto& [pattern, name, count] : {std::tuple{"block.*.up", "up", 2},
                                             {"block.*.query", "query", 2},
                                             {"block.*.down.bias", "down.bias", 2},
                                             {"positions", "positions", 1}}) {
    const auto group = std::ranges::find(found.groups, pattern, &RunnerUp::parameters);
    ASSERT_NE(group, found.groups.end()) << pattern;
    EXPECT_EQ(group->count, count);
    EXPECT_EQ(group->way, SyncWay::all_reduce);
    double best_s = infinity;
    SyncWay best = SyncWay::as_planned;
    for (const SyncWay way :
         {SyncWay::sharded_update, SyncWay::sharded_gradient, SyncWay::sharded_parameter, SyncWay::factors}) {
      if (way == SyncWay::factors && (std::string(name) == "down.bias" || std::string(name) == "positions"))
        continue;  // they have none
      if (const double s = on.step_s(name, way); s < best_s * (1 - kSumRounding)) best_s = s, best = way;
    }
    ASSERT_TRUE(group->next) << pattern;
    EXPECT_EQ(*group->next, best) << pattern;
    EXPECT_NEAR(group->next_step_s, best_s, kSumRounding * best_s) << pattern;
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

TEST(RunnersUp, AreTheSameWhateverTheThreads) {
  const OnNodes on;
  const CostModel costs(on.cluster);
  EXPECT_EQ(runners_up_text(runners_up(on.plan, on.graph, costs, 1), ""),
            runners_up_text(runners_up(on.plan, on.graph, costs, 4), ""));
}

TEST(RunnersUp, HaveBucketsMadeAnewWhereThatIsFaster) {
  PlannerOptions options;
  options.overlap = "all";
  const OnNodes on(options);
  ASSERT_FALSE(on.plan.sync.empty());
  const CostModel costs(on.cluster);
  const RunnersUp found = runners_up(on.plan, on.graph, costs, 2);
  const GraphUses uses(on.graph);
  const SyncWays ways(on.plan, uses);
  for (const RunnerUp& group : found.groups) {
    if (group.parameters != "block.*.up") continue;
    Plan changed = on.plan;
    std::vector<ValueIndex> sums;
    for (const SyncVariable& variable : ways.variables())
      if (on.graph.states[variable.parameter].name.ends_with(".up")) {
        ways.set(changed, variable, *group.next);
        sums.push_back(variable.path.sum(on.graph));
      }
    changed.sync = SumsForBuckets(changed, uses).in_soonest_buckets(changed, costs);
    EXPECT_LE(group.next_step_s, simulate(lower(on.graph, changed), costs).step_s * (1 + kSumRounding));
  }
}

TEST(RunnersUp, AreATableOfGroupsTheClosestFirst) {
  const OnNodes on;
  const RunnersUp found = runners_up(on.plan, on.graph, CostModel(on.cluster), 2);
  for (std::size_t g = 1; g < found.groups.size(); ++g)
    EXPECT_LE(found.groups[g - 1].next_step_s, found.groups[g].next_step_s);
  const std::string text = runners_up_text(found, " (test)");
  EXPECT_THAT(text, HasSubstr(" (test); if gradients went another way"));
  EXPECT_THAT(text, HasSubstr("gradients of"));
  EXPECT_THAT(
      text,
      testing::ContainsRegex(
          "block\\.\\*\\.up +x 2 +0 +8\\.00 KiB +all-reduce +[a-z0-9-]+ +[0-9.]+ [mu]s +[+-][0-9.]+ ms"));
}

TEST(RunnersUp, AreNoneOfAPlanOnOneDevice) {
  PlannerOptions options;
  options.devices = 1;
  const Plan plan = plan_quietly(small_model(), small_cluster(1), options);
  const Graph graph = tiny_gpt(plan.micro_batch_samples);
  EXPECT_EQ(
      runners_up_text(runners_up(plan, graph, CostModel(plan.cluster), 1), ""),
      "there is no gradient that could be synchronised in another way (those of tied weights, and ones that "
      "are compressed or delayed, go as planned)\n");
}

TEST(RunnersUp, ThatDoNotFitAreNone) {
  OnNodes on;
  const std::int64_t planned = on.plan.prediction.meshes[0_m].memory.total;
  on.plan.cluster.memory_bytes = on.cluster.memory_bytes = planned - 1;
  for (const RunnerUp& group : runners_up(on.plan, on.graph, CostModel(on.cluster), 1).groups)
    EXPECT_NE(group.next, SyncWay::factors) << group.parameters << " holds what it gathers";
  on.plan.cluster.memory_bytes = on.cluster.memory_bytes = planned / 2;
  const RunnersUp none = runners_up(on.plan, on.graph, CostModel(on.cluster), 1);
  for (const RunnerUp& group : none.groups) EXPECT_EQ(group.next, std::nullopt) << group.parameters;
  EXPECT_THAT(runners_up_text(none, ""), HasSubstr("all-reduce  none fits"));
}

}  // namespace
}  // namespace alpa
