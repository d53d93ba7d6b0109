#include "libalpa/graph/dimension_roles.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "libalpa/model/model.h"
#include "libalpa/planner/search/baselines.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

/// The names of the factors that run over samples, of every node of an operator.
std::set<std::string> sample_factors(const Graph& graph, const std::string& op) {
  const auto roles = factor_roles(graph, node_rules(graph));
  std::set<std::string> names;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.op->name != op) continue;
    const std::vector<TensorType> types = operand_types(graph, node);
    const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
    std::string of_node;
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
      if (roles[n][f] == FactorRole::sample) of_node += rule.factors[f].name;
    names.insert(of_node);
  }
  return names;
}

/// Batch norms of the tiny Wide-ResNet have groups of two samples.
Graph wide_resnet(std::int64_t samples) {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return training_step_graph(read_model(source / "tests/data/tiny_wrn.toml", {source / "share/blocks"}),
                             samples);
}

TEST(DimensionRoles, OfGroupedSamplesAreThoseOfTheGroups) {
  const Graph graph = wide_resnet(8);
  EXPECT_EQ(sample_factors(graph, "batch_norm"), std::set<std::string>{"m"});
  EXPECT_EQ(sample_factors(graph, "channel_mean"), std::set<std::string>{"m"});
  EXPECT_EQ(sample_factors(graph, "conv2d"), std::set<std::string>{"n"});
}

TEST(DimensionRoles, OfASingleGroupAreThoseOfItsSamples) {
  const Graph graph = wide_resnet(2);
  EXPECT_EQ(sample_factors(graph, "batch_norm"), std::set<std::string>{"b"});
  EXPECT_EQ(sample_factors(graph, "channel_mean"), std::set<std::string>{"b"});
  EXPECT_EQ(sample_factors(graph, "batch_norm_grad"), std::set<std::string>{"b"});
  EXPECT_EQ(sample_factors(graph, "running_statistic"), std::set<std::string>{""});
  EXPECT_EQ(sample_factors(graph, "conv2d"), std::set<std::string>{"n"});
}

TEST(SequenceMethods, HaveNoPlanForAModelWithoutTokens) {
  const Graph images = wide_resnet(8);
  for (const char* method : {"sequence", "ring"})
    EXPECT_TRUE(Baselines(images, 2, testing_models::small_cluster(2), 1, {}).of(method).empty());
}

}  // namespace
}  // namespace alpa
