#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "tests/support/index_literals.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const TensorType x{DType::f32, {2, 3, 8}}, w{DType::f32, {8, 4}}, ids{DType::i32, {2, 3}};

std::vector<TensorType> results(std::string_view op, const std::vector<TensorType>& operands,
                                const Attributes& attributes) {
  return result_types(op_catalog().find(op), {operands, attributes});
}

TEST(Einsum, RefusesWhatIsNoProductOfTwoTensors) {
  for (const auto& [equation, fault] : std::vector<std::pair<std::string, std::string>>{
           {"b s k, k n -> b n", "has 's' in one tensor only"},
           {"b s k, k n -> b s n n", "has 'n' twice in one tensor"},
           {"b s k, k n -> b s n | whole k", "has a '|'"},
           {"b s k, k n -> b s n, n", "has more than one result"}})
    EXPECT_THAT(([&, text = equation] {
                  results("einsum", {x, w}, {{"equation", text}});
                }),
                ThrowsMessage<Error>(HasSubstr(fault)));
  EXPECT_THAT(
      [&] {
        results("einsum", {x}, {{"equation", "b s k -> b s"}});
      },
      ThrowsMessage<Error>(HasSubstr("is applied to 1 operands, expected 2")));
}

TEST(Einsum, WithAProductOfFactorsHasGradients) {
  GraphBuilder g(op_catalog());
  const ValueIndex heads = g.state("x", x, {}, true),
                   weight = g.state("w", {DType::f32, {2, 4, 5}}, {}, true);
  g.add("einsum", {heads, weight}, {{"equation", "b s (h k), h k d -> b s d"}});
  const Node node = g.graph().nodes[0_n];
  const ValueIndex dy = g.input(InputKind::tokens, {DType::f32, {2, 3, 5}}, "dy");
  const std::vector<ValueIndex> gradients = node.op->gradient(g, node, std::vector<ValueIndex>{dy});
  EXPECT_EQ(g.type(gradients[0]), x);
  EXPECT_EQ(g.type(gradients[1]), (TensorType{DType::f32, {2, 4, 5}}));
}

TEST(Rearrange, RefusesToSumOrToRepeat) {
  EXPECT_THAT(
      [&] {
        results("rearrange", {x}, {{"equation", "b s k -> b s"}});
      },
      ThrowsMessage<Error>(HasSubstr("has 'k' in one tensor only")));
  EXPECT_THAT(
      [&] {
        results("rearrange", {x}, {{"equation", "b s k -> b s k r"}, {"size_r", std::int64_t{2}}});
      },
      ThrowsMessage<Error>(HasSubstr("has 'r' in one tensor only")));
}

TEST(Rotary, RefusesAnOddHead) {
  EXPECT_THAT(
      [&] {
        results("rotary", {{DType::f32, {2, 3, 4, 7}}}, {{"theta", 1e4}});
      },
      ThrowsMessage<Error>(HasSubstr("turns pairs of numbers, so a head cannot have 7")));
}

TEST(Operators, TakeTokenIdsWhereTheySaySoAndNowhereElse) {
  EXPECT_EQ(results("embedding", {w, ids}, {})[0].dtype, DType::f32);
  EXPECT_THAT(
      [&] {
        results("embedding", {w, {DType::f32, {2, 3}}}, {});
      },
      ThrowsMessage<Error>(HasSubstr("operand 1 of operator 'embedding' wants i32, got f32[2x3]")));
  EXPECT_THAT(
      [&] { results("gelu", {ids}, {}); },
      ThrowsMessage<Error>(HasSubstr("operand 0 of operator 'gelu' wants floating point, got i32[2x3]")));
}

TEST(Recurrence, RefusesGatesAndWeightsThatAreNotItsOwn) {
  const TensorType gates{DType::f32, {2, 3, 4, 8}}, lengths{DType::i32, {2}};
  EXPECT_EQ(results("lstm", {gates, {DType::f32, {8, 4, 8}}, lengths}, {})[0].shape, (Shape{2, 3, 8}));
  EXPECT_THAT(([&] {
                results("gru", {gates, {DType::f32, {8, 4, 8}}, {DType::f32, {4, 8}}, lengths}, {});
              }),
              ThrowsMessage<Error>(HasSubstr("wants 3 gates, got 4")));
  EXPECT_THAT(([&] {
                results("lstm", {gates, {DType::f32, {6, 4, 8}}, lengths}, {});
              }),
              ThrowsMessage<Error>(HasSubstr("takes a hidden state of 6, but gives one of 8")));
}

}  // namespace
}  // namespace alpa
