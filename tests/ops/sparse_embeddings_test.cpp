#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libalpa/base/error.h"
#include "libalpa/graph/autodiff.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Rows of a table for 2 sequences of 3 ids; `scores`: times the same table, as tied weights are.
Graph looked_up(const TrainingOptions& options, bool scores) {
  GraphBuilder g(op_catalog());
  g.graph().samples = 2;
  g.begin_layer("embedding");
  const ValueIndex ids = g.input(InputKind::data, {DType::i32, {2, 3}}, "ids");
  const ValueIndex table = g.state("table", {DType::f32, {7, 5}}, {Initializer::Kind::normal, 0.1}, true);
  ValueIndex x = g.add("embedding", {table, ids});
  if (scores) x = g.add("einsum", {x, table}, {{"equation", "b s d, v d -> b s v"}});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), options);
}

TrainingOptions sparse() {
  TrainingOptions options;
  options.embedding_gradients = EmbeddingGradients::sparse;
  return options;
}

TEST(SparseEmbeddings, AddUpRowsByIdBeforeTheTable) {
  TrainingOptions options = sparse();
  options.distinct_ids = 0.25;
  const Graph graph = looked_up(options, false);
  const auto found = std::ranges::find_if(graph.nodes, [](const Node& n) { return n.op->adds_up_rows; });
  ASSERT_NE(found, graph.nodes.end());
  const Value& rows = value_of(graph, found->operands[0]);
  EXPECT_TRUE(node_of(graph, rows.producer).op->joins_rows);
  EXPECT_EQ(rows.row_ids, found->operands[1]);
  EXPECT_EQ(rows.wire, (WireFormat{{}, 7, 0.25}));
}

TEST(SparseEmbeddings, AreRefusedWhereEveryTableIsMultipliedToo) {
  EXPECT_THAT([] { looked_up(sparse(), true); },
              ThrowsMessage<Error>(HasSubstr("no table that one embedding alone looks up")));
}

TEST(SparseEmbeddings, AreSummedInF32) {
  TrainingOptions options = sparse();
  options.gradient_sum = GradientSum::parameters;
  EXPECT_THAT([&] { looked_up(options, false); }, ThrowsMessage<Error>(HasSubstr("summed in f32")));
}

}  // namespace
}  // namespace alpa
