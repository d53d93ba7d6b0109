#include "libalpa/graph/sharding_rule.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

TEST(ParseRule, BindsFactorsToExtentsAndShapesTheResult) {
  const std::vector<TensorType> operands{f32({2, 256, 384}), f32({384, 1536})};
  const ShardingRule rule = parse_rule("b s k, k n -> b s n", operands);
  EXPECT_EQ(result_shape(rule, 0), (Shape{2, 256, 1536}));
  EXPECT_TRUE(rule.reduces(0, 2));   // k
  EXPECT_FALSE(rule.reduces(0, 0));  // b
}

TEST(ParseRule, ReadsProductsEllipsesScalarsAndMarks) {
  const std::vector<TensorType> attention{f32({2, 8, 12, 64}), f32({2, 8, 4, 64})};
  const ShardingRule grouped =
      parse_rule("b s (g r) k, b t g k -> b (g r) s | whole k | ring t s", attention);
  EXPECT_EQ(result_shape(grouped, 0), (Shape{2, 12, 8}));
  EXPECT_TRUE(grouped.factors[3].size == 3 && grouped.factors[3].name == "r");
  EXPECT_EQ(grouped.factors[5].name, "t");
  EXPECT_EQ(grouped.factors[5].ring, 1);  // s
  const std::vector<TensorType> norm{f32({2, 8, 64}), f32({64})};
  EXPECT_EQ(result_shape(parse_rule("... d, d -> ... d, ... | whole d", norm), 1), (Shape{2, 8}));
  const std::vector<TensorType> scalar{f32({}), f32({2, 8})};
  EXPECT_EQ(result_shape(parse_rule(", ... -> ...", scalar), 0), (Shape{2, 8}));
  EXPECT_EQ(result_shape(parse_rule("... -> ", std::vector<TensorType>{norm[0]}), 0), (Shape{}));
}

TEST(ParseRule, TakesSizesThatNoOperandShows) {
  const std::vector<TensorType> operands{f32({2, 8, 64}), f32({2, 8})};
  EXPECT_EQ(result_shape(parse_rule("b s d, b s -> v d", operands, {{"v", 1000}}), 0), (Shape{1000, 64}));
}

TEST(ParseRule, SaysWhereExtentsContradict) {
  const std::vector<TensorType> operands{f32({2, 384}), f32({385, 16})};
  EXPECT_THAT([&] { parse_rule("m k, k n -> m n", operands); },
              ThrowsMessage<Error>(HasSubstr("'k' of size 384 meet an extent of 385")));
  EXPECT_THAT([&] { parse_rule("m k -> m", operands); },
              ThrowsMessage<Error>(HasSubstr("wants 1 operands, got 2")));
}

}  // namespace
}  // namespace alpa
