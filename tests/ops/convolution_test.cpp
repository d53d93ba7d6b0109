#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using I = std::int64_t;

const TensorType images{DType::f32, {4, 9, 7, 6}}, filters{DType::f32, {3, 3, 6, 10}};

ShardingRule rule(const Attributes& attributes, const TensorType& weight = filters) {
  return rule_of(op_catalog().find("conv2d"), {std::vector{images, weight}, attributes});
}

Shape result(const Attributes& attributes) { return result_shape(rule(attributes), 0); }

std::string split_factors(const ShardingRule& of) {
  std::string names;
  for (const Factor& factor : of.factors)
    if (!factor.whole) names += factor.name;
  return names;
}

TEST(Convolution, HasAResultElementPerPlaceOfTheWindow) {
  EXPECT_EQ(result({}), (Shape{4, 7, 5, 10}));
  EXPECT_EQ(result({{"padding", I{1}}}), (Shape{4, 9, 7, 10}));
  EXPECT_EQ(result({{"padding", I{1}}, {"stride", I{2}}}), (Shape{4, 5, 4, 10}));
  EXPECT_EQ(result({{"stride_h", I{3}}, {"padding_w", I{2}}}), (Shape{4, 3, 9, 10}));
  EXPECT_EQ(result({{"dilation", I{3}}}), (Shape{4, 3, 1, 10}));
}

TEST(Convolution, SplitsSamplesAndChannelsOrGroups) {
  EXPECT_EQ(split_factors(rule({})), "ncf");
  EXPECT_EQ(split_factors(rule({{"size_g", I{2}}}, {DType::f32, {3, 3, 3, 10}})), "ng");
}

TEST(Convolution, WorksOnEveryElementOfAFilterInEveryPlace) {
  const std::vector<TensorType> operands{images, filters};
  const Attributes attributes{{"stride", I{2}}};
  EXPECT_EQ(flops_of(op_catalog().find("conv2d"), {operands, attributes}),
            2.0 * 4 * (4 * 3) * 10 * (3 * 3) * 6);
}

TEST(Convolution, RefusesWindowsAndChannelsThatDoNotFit) {
  for (const auto& [attributes, fault] : std::vector<std::pair<Attributes, std::string>>{
           {{{"dilation", I{5}}}, "a window over 11 does not fit into 9 with padding 0"},
           {{{"stride", I{0}}}, "stride is 0, expected 1 or more"},
           {{{"padding", I{-1}}}, "padding is -1, expected 0 or more"},
           {{{"size_g", I{2}}}, "has 'g' of size 12 meet an extent of 6"}})
    EXPECT_THAT(([&, settings = attributes] { rule(settings); }), ThrowsMessage<Error>(HasSubstr(fault)));
}

}  // namespace
}  // namespace alpa
