#include "libalpa/sharding/strategy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

/// "operands -> results" of every strategy.
std::vector<std::string> table(const char* op, std::vector<TensorType> operands, const Attributes& attributes,
                               const MeshShape& mesh) {
  const OpDef& def = op_catalog().find(op);
  const OpCall call{operands, attributes};
  std::vector<std::string> lines;
  for (const Strategy& strategy : strategies(def, call, mesh)) {
    const NodeLayout layout = layout_of(def, call, strategy, mesh);
    std::string line;
    for (const ShardingSpec& spec : layout.operands) line += spec_text(spec) + " ";
    line += "->";
    for (const ShardingSpec& spec : layout.results) line += " " + spec_text(spec);
    lines.push_back(line);
  }
  return lines;
}

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

TEST(Strategies, OfAMatrixProductAreRowsColumnsInnerAndNone) {
  EXPECT_THAT(table("einsum", {f32({8, 16}), f32({16, 32})}, {{"equation", "m k, k n -> m n"}}, {4}),
              testing::ElementsAre("RR RR -> RR", "S0R RR -> S0R", "RS0 S0R -> RR+sum0", "RR RS0 -> RS0"));
}

TEST(Strategies, OfABatchedProductOnA2DMeshContainThePapersTable) {
  const auto lines =
      table("einsum", {f32({8, 8, 8}), f32({8, 8, 8})}, {{"equation", "b i k, b k j -> b i j"}}, {2, 4});
  EXPECT_EQ(lines.size(), 25u);  // each of two axes: b, i, k, j or idle
  for (const char* row :
       {"RS0R RRS1 -> RS0S1", "RS0S1 RS1R -> RS0R+sum1", "RRS1 RS1S0 -> RRS0+sum1", "S0S1R S0RR -> S0S1R",
        "S0RS1 S0S1R -> S0RR+sum1", "RS01R RRR -> RS01R", "RRS01 RS01R -> RRR+sum0+sum1"})
    EXPECT_THAT(lines, testing::Contains(row));
}

/// Of "b i k, b k j -> b i j", in the form of table(): each axis is given every letter or none, and what
/// divides is kept.
std::vector<std::string> batched_products(const std::map<char, std::int64_t>& size, const MeshShape& mesh) {
  const std::string letters = "bikj-";
  std::vector<std::string> lines;
  std::vector<std::size_t> given(mesh.size(), 0);
  const auto spec = [&](const std::string& dimensions) {
    std::string text;
    for (const char letter : dimensions) {
      std::string axes;
      for (std::size_t axis = 0; axis < mesh.size(); ++axis)
        if (letters[given[axis]] == letter) axes += std::to_string(axis);
      text += axes.empty() ? "R" : "S" + axes;
    }
    return text;
  };
  for (;;) {
    std::map<char, std::int64_t> parts;
    std::string sums;
    for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
      parts.try_emplace(letters[given[axis]], 1).first->second *= mesh[axis];
      if (letters[given[axis]] == 'k') sums += "+sum" + std::to_string(axis);
    }
    if (std::ranges::all_of(
            parts, [&](const auto& of) { return of.first == '-' || size.at(of.first) % of.second == 0; }))
      lines.push_back(spec("bik") + " " + spec("bkj") + " -> " + spec("bij") + sums);
    std::size_t axis = 0;
    while (axis < mesh.size() && ++given[axis] == letters.size()) given[axis++] = 0;
    if (axis == mesh.size()) return lines;
  }
}

TEST(Strategies, OfABatchedProductOnAnyMeshAreAllThatDivide) {
  const std::map<char, std::int64_t> size{{'b', 4}, {'i', 12}, {'k', 8}, {'j', 6}};
  for (const MeshShape& mesh : {MeshShape{4}, {2, 4}, {2, 2, 2}, {2, 3, 2}, {2, 2, 4}, {4, 2, 2}})
    EXPECT_THAT(
        table("einsum", {f32({4, 12, 8}), f32({4, 8, 6})}, {{"equation", "b i k, b k j -> b i j"}}, mesh),
        testing::UnorderedElementsAreArray(batched_products(size, mesh)));
}

TEST(Strategies, SplitOnlyWhatDivides) {
  EXPECT_THAT(table("relu", {f32({6, 8})}, {}, {4}), testing::ElementsAre("RR -> RR", "RS0 -> RS0"));
}

TEST(Strategies, LetPartialValuesThroughLinearOperatorsOnly) {
  EXPECT_THAT(table("add", {f32({8}), f32({8})}, {}, {2}),
              testing::ElementsAre("R R -> R", "S0 S0 -> S0", "R+sum0 R+sum0 -> R+sum0"));
  EXPECT_THAT(table("gelu", {f32({8})}, {}, {2}), testing::ElementsAre("R -> R", "S0 -> S0"));
}

TEST(Strategies, OfAttentionSplitHeadsByGroupsQueriesAndWithThemKeysThatGoRound) {
  EXPECT_THAT(table("attention", {f32({2, 16, 8, 4}), f32({2, 16, 4, 4}), f32({2, 16, 4, 4})}, {}, {2}),
              testing::ElementsAre("RRRR RRRR RRRR -> RRRR RRR", "S0RRR S0RRR S0RRR -> S0RRR S0RR",
                                   "RS0RR RRRR RRRR -> RS0RR RRS0", "RRS0R RRS0R RRS0R -> RRS0R RS0R",
                                   "RS0RR RS0RR RS0RR -> RS0RR RRS0"));
}

TEST(Strategies, HaveARingAlongOneAxisAtMost) {
  const auto lines =
      table("attention", {f32({1, 16, 1, 4}), f32({1, 16, 1, 4}), f32({1, 16, 1, 4})}, {}, {2, 2});
  EXPECT_THAT(lines, testing::UnorderedElementsAre(
                         "RRRR RRRR RRRR -> RRRR RRR", "RS0RR RRRR RRRR -> RS0RR RRS0",
                         "RS1RR RRRR RRRR -> RS1RR RRS1", "RS01RR RRRR RRRR -> RS01RR RRS01",
                         "RS0RR RS0RR RS0RR -> RS0RR RRS0", "RS1RR RS1RR RS1RR -> RS1RR RRS1",
                         "RS01RR RS0RR RS0RR -> RS01RR RRS01", "RS01RR RS1RR RS1RR -> RS01RR RRS01"));
}

TEST(Strategies, OfAVocabularySplitLeaveASumAndAMaximum) {
  EXPECT_THAT(table("row_max", {f32({4, 8})}, {}, {2}),
              testing::ElementsAre("RR -> R", "S0R -> S0", "RS0 -> R+max0"));
  EXPECT_THAT(table("embedding", {f32({8, 4}), {DType::i32, {2, 2}}}, {}, {2}),
              testing::Contains("S0R RR -> RRR+sum0"));
}

TEST(Strategies, OfAConvolutionSplitSamplesAndChannelsButNotImages) {
  EXPECT_THAT(table("conv2d", {f32({4, 8, 8, 6}), f32({3, 3, 6, 10})}, {}, {2}),
              testing::ElementsAre("RRRR RRRR -> RRRR", "S0RRR RRRR -> S0RRR", "RRRS0 RRS0R -> RRRR+sum0",
                                   "RRRR RRRS0 -> RRRS0", "RRRR+sum0 RRRR -> RRRR+sum0"));
}

TEST(Strategies, OfBatchStatisticsSplitGroupsOfSamplesOrTheSamplesOfTheOnlyGroup) {
  EXPECT_THAT(table("channel_variance", {f32({8, 2, 2, 4}), f32({2, 4})}, {{"size_b", std::int64_t{4}}}, {2}),
              testing::ElementsAre("RRRR RR -> RR", "S0RRR S0R -> S0R", "RRRS0 RS0 -> RS0"));
  EXPECT_THAT(table("channel_variance", {f32({8, 2, 2, 4}), f32({1, 4})}, {{"size_b", std::int64_t{8}}}, {2}),
              testing::ElementsAre("RRRR RR -> RR", "S0RRR RR -> RR+sum0", "RRRS0 RS0 -> RS0"));
}

TEST(LayoutOf, DividesTheSizesThatNoOperandShows) {
  const OpDef& op = op_catalog().find("embedding_grad");
  const std::vector<TensorType> operands{f32({2, 4, 6}), {DType::i32, {2, 4}}};
  const Attributes attributes{{"size_v", std::int64_t{100}}};
  const OpCall call{operands, attributes};
  for (const Strategy& strategy : strategies(op, call, {2})) {
    const NodeLayout layout = layout_of(op, call, strategy, {2});
    EXPECT_EQ(result_types(op, layout.local_call()), layout.local_results)
        << strategy_text(op, call, strategy);
  }
}

}  // namespace
}  // namespace alpa
