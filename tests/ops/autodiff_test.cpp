#include "libalpa/graph/autodiff.h"

#include <gmock/gmock.h>

#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

/// tokens -> embedding -> two matrix products -> loss, the table tied to the last product.
Graph tied_model() {
  GraphBuilder g(op_catalog());
  g.begin_layer("embedding");
  g.graph().samples = 2;
  const ValueIndex tokens = g.input(InputKind::tokens, {DType::i32, {2, 4}}, "tokens");
  const ValueIndex targets = g.input(InputKind::targets, {DType::i32, {2, 4}}, "targets");
  const ValueIndex table = g.state("table", {DType::f32, {10, 6}}, {Initializer::Kind::normal, 0.02}, true);
  const ValueIndex x = g.add("embedding", {table, tokens});
  g.begin_layer("middle");
  const ValueIndex w = g.state("w", {DType::f32, {6, 6}}, {Initializer::Kind::normal, 0.02}, true);
  const ValueIndex y = g.add("einsum", {x, w}, {{"equation", "b s k, k n -> b s n"}});
  g.begin_layer("head");
  const ValueIndex logits = g.add("einsum", {y, table}, {{"equation", "b s d, v d -> b s v"}});
  const ValueIndex m = g.add("row_max", {logits});
  const ValueIndex z = g.add("row_sum_exp", {logits, m});
  const ValueIndex losses = g.add("cross_entropy", {logits, targets, m, z});
  g.graph().loss = g.add("reduce_sum", {losses});
  return g.finish();
}

int count(const Graph& graph, std::string_view op, Phase phase) {
  int n = 0;
  for (const Node& node : graph.nodes) n += node.op->name == op && node.phase == phase;
  return n;
}

TEST(TrainingGraph, DifferentiatesEachProductTwice) {
  const Graph graph = training_graph(tied_model(), op_catalog(), {});
  EXPECT_EQ(count(graph, "einsum", Phase::forward), 2);
  EXPECT_EQ(count(graph, "einsum", Phase::backward), 4);
  EXPECT_EQ(count(graph, "adamw", Phase::update), 2);
}

TEST(TrainingGraph, GivesATiedParameterOneAccumulatorPerLayerAndAddsThemInTheUpdate) {
  const Graph graph = training_graph(tied_model(), op_catalog(), {});
  EXPECT_EQ(count(graph, "accumulate", Phase::backward), 3);
  EXPECT_EQ(count(graph, "add", Phase::update), 1);
}

TEST(TrainingGraph, KeepsF32MasterWeightsBesideBf16Parameters) {
  Graph forward = tied_model();
  for (Value& value : forward.values)
    if (value.type.dtype == DType::f32 && value.kind == ValueKind::state) value.type.dtype = DType::bf16;
  const Graph graph = training_graph(forward, op_catalog(), {});
  EXPECT_EQ(graph.states.size(), 2u + 2 * 3);
  for (const State& state : graph.states) EXPECT_GE(state.next, 0) << state.name;
}

TEST(TrainingGraph, EqualTextsForEqualGraphs) {
  EXPECT_EQ(graph_fingerprint(training_graph(tied_model(), op_catalog(), {})),
            graph_fingerprint(training_graph(tied_model(), op_catalog(), {})));
}

}  // namespace
}  // namespace alpa
