// How the search splits a sample that is long: by what gathering keys and passing them around cost.
#include <gtest/gtest.h>

#include <set>

#include "libalpa/planner/make_plan.h"
#include "libalpa/sharding/strategy.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

/// One sample with one head: four devices can share its positions only.
Graph long_sample(std::int64_t samples) {
  return training_graph(testing_models::tiny_gpt_forward(samples, 1, 256, 16, 1, 32), op_catalog(), {});
}

/// Strategies of attention and its gradient where one kind of collective takes long, but not as long as doing
/// the work of others too, and all others take next to nothing.
std::set<std::string> attention_where_slow(CollectiveKind slow) {
  Profile profile;
  profile.cluster = testing_models::small_cluster(4);
  profile.cluster.f32_flops_per_s = 1e7;  // 50 us for a position's vector times a matrix
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::shift})
    for (const GroupShape group : {GroupShape{1, 2}, GroupShape{1, 4}})
      profile.collectives.push_back({kind, group, 1024, kind == slow ? 1e-3 : 1e-6});
  PlannerOptions options;
  options.method = "intra-only";
  options.micro_batches = 1;
  options.rematerialize = Rematerialize::never;
  Log log("test", LogLevel::off);
  const Plan plan = make_plan({"long", "", 1, long_sample}, CostModel(profile), options, log);
  const Graph graph = long_sample(1);
  std::set<std::string> texts;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.op->name.starts_with("attention"))
      texts.insert(
          strategy_text(*node.op, {operand_types(graph, node), node.attributes}, plan.node_strategy[n]));
  }
  return texts;
}

TEST(LongSequences, HaveTheirKeysPassedAroundWhereThatIsCheaperThanGatheringThem) {
  EXPECT_EQ(attention_where_slow(CollectiveKind::all_gather), std::set<std::string>{"ring t:0"});
  EXPECT_EQ(attention_where_slow(CollectiveKind::shift), std::set<std::string>{"s:0"});
}

}  // namespace
}  // namespace alpa
