#include "libalpa/graph/fusion.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/support/small_models.h"

namespace alpa {
namespace {

using testing_models::tiny_gpt_forward;

/// As models are made: fused, differentiated, fused.
Graph fused_training(const Graph& forward) {
  return with_fused_operators(training_graph(with_fused_operators(forward, op_catalog()), op_catalog(), {}),
                              op_catalog());
}

std::map<std::string, int> counts(const Graph& graph) {
  std::map<std::string, int> of;
  for (const Node& node : graph.nodes) ++of[std::string(node.op->name)];
  return of;
}

/// Two weights, a bias and a GELU; `more` adds what else uses what is between them.
template <class More>
Graph small_graph(const More& more) {
  GraphBuilder g(op_catalog());
  g.begin_layer("first");
  g.graph().samples = 2;
  const ValueIndex x = g.input(InputKind::data, {DType::f32, {2, 3}}, "x");
  const ValueIndex bias = g.state("bias", {DType::f32, {3}}, {}, true);
  const ValueIndex sum = g.add("bias_add", {x, bias});
  more(g, sum);
  return g.finish();
}

TEST(FusedOperators, AreOfTheForwardBeforeItIsDifferentiatedAndOfTheBackwardAfterIt) {
  const std::map<std::string, int> apart = counts(training_graph(tiny_gpt_forward(2, 3), op_catalog(), {})),
                                   fused = counts(fused_training(tiny_gpt_forward(2, 3)));
  EXPECT_EQ(apart.at("gelu"), 3);
  EXPECT_EQ(fused.at("bias_gelu"), 3);
  EXPECT_EQ(fused.at("bias_gelu_grad"), 3);
  EXPECT_FALSE(fused.contains("gelu") || fused.contains("gelu_grad"));
  EXPECT_EQ(fused.at("bias_add"), apart.at("bias_add") - 3);
  EXPECT_EQ(fused.at("reduce_leading"), apart.at("reduce_leading") - 3);
  // Both norms of each block have a residual beside them, the last one of the head has none.
  EXPECT_EQ(fused.at("layer_norm_grad_add"), 6);
  EXPECT_EQ(fused.at("layer_norm_grad"), 1);
  EXPECT_EQ(fused.at("add"), apart.at("add") - 6);
}

TEST(FusedOperators, TakeTheOperandsOfBothAndGiveTheResultsOfBoth) {
  const Graph apart = training_graph(tiny_gpt_forward(2, 1), op_catalog(), {});
  const Graph fused = fused_training(tiny_gpt_forward(2, 1));
  for (const NodeIndex n : fused.nodes.indices()) {
    const Node& node = fused.nodes[n];
    for (const ValueIndex result : node.results) EXPECT_EQ(value_of(fused, result).producer, n);
    for (const ValueIndex operand : node.operands) {
      const Value& value = value_of(fused, operand);
      EXPECT_TRUE(value.kind != ValueKind::computed || (value.producer >= 0 && value.producer < n))
          << node.name;
    }
    const std::vector<TensorType> types =
        result_types(*node.op, {operand_types(fused, node), node.attributes});
    ASSERT_EQ(types.size(), node.results.size());
    for (std::size_t r = 0; r < types.size(); ++r)
      EXPECT_EQ(types[r], value_of(fused, node.results[r]).type) << node.name;
  }
  EXPECT_EQ(fused.states.size(), apart.states.size());
  EXPECT_EQ(parameter_count(fused), parameter_count(apart));
}

TEST(FusedOperators, LeaveAloneWhatSomethingElseUses) {
  const Graph twice = with_fused_operators(small_graph([](GraphBuilder& g, ValueIndex sum) {
                                             const ValueIndex y = g.add("gelu", {sum});
                                             g.graph().loss = g.add("reduce_sum", {g.add("mul", {y, sum})});
                                           }),
                                           op_catalog());
  EXPECT_FALSE(counts(twice).contains("bias_gelu"));
  const Graph counted = with_fused_operators(small_graph([](GraphBuilder& g, ValueIndex sum) {
                                               g.graph().metrics.push_back({"sum", true, {sum}});
                                               g.graph().loss = g.add("reduce_sum", {g.add("gelu", {sum})});
                                             }),
                                             op_catalog());
  EXPECT_FALSE(counts(counted).contains("bias_gelu"));
}

const Attributes norm_attributes{{"size_b", std::int64_t{4}}, {"epsilon", 1e-3}};

enum class Residual { none, added };

/// A batch norm over all samples, and a ReLU, of the norm alone or of its sum with what came in.
Graph norm_and_relu(Residual residual = Residual::none) {
  GraphBuilder g(op_catalog());
  g.begin_layer("norm");
  g.graph().samples = 4;
  const Attributes of_group{{"size_b", std::int64_t{4}}};
  const ValueIndex x = g.state("x", {DType::f32, {4, 2, 3}}, {}, true);
  const ValueIndex mean = g.add("channel_mean", {x}, of_group);
  const ValueIndex variance = g.add("channel_variance", {x, mean}, of_group);
  const ValueIndex gain = g.state("gain", {DType::f32, {3}}, {}, true);
  const ValueIndex bias = g.state("bias", {DType::f32, {3}}, {}, true);
  const ValueIndex norm = g.add("batch_norm", {x, mean, variance, gain, bias}, norm_attributes);
  const ValueIndex of_relu = residual == Residual::added ? g.add("add", {x, norm}) : norm;
  g.graph().loss = g.add("reduce_sum", {g.add("relu", {of_relu})});
  return g.finish();
}

TEST(FusedOperators, HaveTheAttributesOfWhicheverHasSome) {
  const Graph graph = with_fused_operators(norm_and_relu(), op_catalog());
  const auto fused =
      std::ranges::find(graph.nodes, "batch_norm_relu", [](const Node& n) { return n.op->name; });
  ASSERT_NE(fused, graph.nodes.end());
  EXPECT_EQ(fused->attributes, norm_attributes);
}

TEST(FusedOperators, TakeTheGradientOfANormThroughItsReluWithoutWritingItInBetween) {
  std::map<std::string, int> apart = counts(training_graph(norm_and_relu(), op_catalog(), {})),
                             fused = counts(fused_training(norm_and_relu()));
  EXPECT_EQ(apart["relu_grad"], 1);
  EXPECT_EQ(apart["batch_norm_sums"], 1);
  EXPECT_EQ(fused["batch_norm_relu_sums"], 1);
  EXPECT_EQ(fused["batch_norm_relu_grad"], 1);
  EXPECT_EQ(fused["relu_grad"] + fused["batch_norm_sums"] + fused["batch_norm_grad"], 0);
}

TEST(FusedOperators, AreOfThreeWhereOneDoesThemAll) {
  const std::map<std::string, int> fused =
      counts(with_fused_operators(norm_and_relu(Residual::added), op_catalog()));
  EXPECT_EQ(
      fused,
      (std::map<std::string, int>{
          {"channel_mean", 1}, {"channel_variance", 1}, {"batch_norm_add_relu", 1}, {"reduce_sum", 1}}));
}

TEST(FusedOperators, AreNeverOfTwoLayers) {
  const Graph graph = with_fused_operators(small_graph([](GraphBuilder& g, ValueIndex sum) {
                                             g.begin_layer("second");
                                             g.graph().loss = g.add("reduce_sum", {g.add("gelu", {sum})});
                                           }),
                                           op_catalog());
  EXPECT_FALSE(counts(graph).contains("bias_gelu"));
}

TEST(FusedOperators, AreFusedOfOperatorsThatThereAre) {
  for (const OpDef* op : op_catalog().all()) {
    if (op->fuses.empty()) continue;
    const std::size_t space = op->fuses.find(' ');
    ASSERT_NE(space, std::string_view::npos) << op->name;
    op_catalog().find(op->fuses.substr(0, space));
    op_catalog().find(op->fuses.substr(space + 1));
    EXPECT_TRUE(op->internal) << op->name;
  }
}

}  // namespace
}  // namespace alpa
