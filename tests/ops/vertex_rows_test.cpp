#include "libalpa/graph/vertex_rows.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/graph/mark_vertex_rows.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

using testing::ElementsAre;

TensorType of_f32(Shape shape) { return {DType::f32, std::move(shape)}; }

/// Rows [8 6 5] of an embedding, made from tokens in groups of 4 samples.
class VertexRowsOfGraph : public ::testing::Test {
 protected:
  VertexRowsOfGraph() : builder_(op_catalog()) {
    builder_.graph().samples = 8;
    tokens_ = builder_.input(InputKind::vertices, {DType::i32, {8, 6}}, "tokens", 11);
    builder_.input(InputKind::vertices, {DType::i32, {8, 6}}, "labels", 3);
    const ValueIndex table = builder_.state("table", of_f32({11, 5}), {}, true);
    rows_ = builder_.add("embedding", {table, tokens_});
  }

  /// Of the node that makes this value.
  std::optional<VertexRows> marked(ValueIndex value, std::vector<std::int64_t> typical = {}) const {
    const Graph graph = with_vertex_rows(builder_.graph(), 4, std::move(typical));
    return vertex_rows_of(node_of(graph, value_of(graph, value).producer).attributes);
  }

  GraphBuilder builder_;
  ValueIndex tokens_, rows_;
};

TEST_F(VertexRowsOfGraph, AreKeptByWhatWorksOnEachRowByItself) {
  const ValueIndex weight = builder_.state("weight", of_f32({5, 7}), {}, true);
  const ValueIndex product =
      builder_.add("einsum", {rows_, weight}, {{"equation", std::string("b v d, d e -> b v e")}});
  EXPECT_EQ(marked(rows_)->operand, 1) << "the tokens";
  const VertexRows rows = marked(builder_.add("sigmoid", {product})).value();
  EXPECT_EQ(rows.operand, 0);
  EXPECT_EQ(rows.group, 4);
  EXPECT_EQ(rows.typical, 24) << "all that there is room for";
  EXPECT_EQ(marked(product, {9, 4, 1})->typical, 14);
}

TEST_F(VertexRowsOfGraph, EndInSumsThatCanBeMadeGroupByGroup) {
  const ValueIndex sum =
      builder_.add("einsum", {rows_, rows_}, {{"equation", std::string("b v d, b v e -> d e")}});
  EXPECT_TRUE(marked(sum));
  EXPECT_FALSE(marked(builder_.add("mul", {sum, sum})));
}

TEST_F(VertexRowsOfGraph, AreLostInWhatTakesVerticesTogether) {
  const ValueIndex among =
      builder_.add("einsum", {rows_, rows_}, {{"equation", std::string("b v d, b w d -> b v w")}});
  EXPECT_FALSE(marked(among)) << "v and w are the same vertices";
  const ValueIndex of_sample =
      builder_.add("einsum", {rows_, builder_.state("of_vertices", of_f32({6}), {}, true)},
                   {{"equation", std::string("b v d, v -> b d")}});
  EXPECT_FALSE(marked(of_sample));
}

TEST_F(VertexRowsOfGraph, AreSplitByWholeGroups) {
  const ValueIndex sum =
      builder_.add("einsum", {rows_, rows_}, {{"equation", std::string("b v d, b v e -> d e")}});
  const Graph graph = with_vertex_rows(builder_.graph(), 4, {});
  const Node& node = node_of(graph, value_of(graph, sum).producer);
  const std::vector<TensorType> types = operand_types(graph, node);
  std::vector<std::string> whole;
  std::int64_t groups = 0;
  for (const Factor& factor : rule_of(*node.op, {types, node.attributes}).factors) {
    if (factor.whole) whole.push_back(factor.name);
    if (factor.name == "groups") groups = factor.size;
  }
  EXPECT_THAT(whole, ElementsAre("b", "v"));
  EXPECT_EQ(groups, 2);
  EXPECT_EQ(result_types(*node.op, {types, node.attributes}).at(0).shape, (Shape{5, 5}));
}

TEST_F(VertexRowsOfGraph, HaveTheWorkOfTypicalData) {
  const Graph all = with_vertex_rows(builder_.graph(), 4, {}),
              half = with_vertex_rows(builder_.graph(), 4, {8, 4});
  const auto flops = [&](const Graph& graph) { return graph_flops(graph, Phase::forward); };
  EXPECT_EQ(flops(half), 0.5 * flops(all));
  EXPECT_EQ(flops(all), flops(builder_.graph()));
}

TEST(RoundsOfFullGroups, TakeAllRowsAsTreesOrAsChains) {
  const std::vector<std::int64_t> trees = rounds_of_full_groups({32, 50, 3}, 32);
  EXPECT_EQ(std::accumulate(trees.begin(), trees.end(), std::int64_t{0}), 32 * 50);
  EXPECT_EQ(trees.front(), 821) << "51.3 % are leaves";
  EXPECT_THAT(rounds_of_full_groups({8, 3, 2}, 4), ElementsAre(4, 4, 4));
}

}  // namespace
}  // namespace alpa
