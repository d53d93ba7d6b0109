#include "libalpa/semantics/graph_uses.h"

#include <gtest/gtest.h>

#include "tests/support/small_models.h"

namespace alpa {
namespace {

using namespace testing_models;

/// One product with weights of that type.
Graph product(DType type, const TrainingOptions& training) {
  GraphBuilder g(op_catalog());
  g.graph().samples = 4;
  g.begin_layer("product");
  const ValueIndex x = g.input(InputKind::data, {type, {4, 8}}, "x"),
                   w = g.state("w", {type, {8, 8}}, {Initializer::Kind::normal, 0.1}, true);
  const ValueIndex y = g.add("einsum", {x, w}, {{"equation", "b i, i o -> b o"}}, "y");
  g.graph().loss = g.add("reduce_sum", {y});
  return training_graph(g.finish(), op_catalog(), training);
}

bool updates_wait(DType type, double gradient_clip) {
  const Graph graph = product(type, {.gradient_clip = gradient_clip});
  return GraphUses(graph).updates_wait;
}

TEST(GraphUses, SayThatUpdatesWaitForTheNormThatTheyClipBy) {
  EXPECT_TRUE(updates_wait(DType::f32, 1));
  EXPECT_TRUE(updates_wait(DType::bf16, 0.5));
  EXPECT_FALSE(updates_wait(DType::f32, 0));
  EXPECT_FALSE(updates_wait(DType::bf16, 0));
}

TEST(GraphUses, SayThatUpdatesOfGradientsThatMayOverflowWait) { EXPECT_TRUE(updates_wait(DType::f16, 0)); }

}  // namespace
}  // namespace alpa
