#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/convolution_scratch.h"

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

ConvolutionScratch scratch_of_forward(const Shape& x, const Shape& weight, const Attributes& attributes) {
  const std::vector<TensorType> operands{{DType::f32, x}, {DType::f32, weight}};
  return convolution_scratch(ConvolutionKind::forward, {operands, attributes});
}

TEST(ConvolutionScratch, HoldsTheWindowsOfAsManyRowsAsKeepItSmall) {
  const Attributes same{{"padding", I{1}}};
  // A row of y has 4 windows of 3 x 3 x 64 f32, so that of 71 * 4 rows it holds all, and of 2,000 * 4 a part.
  EXPECT_EQ(scratch_of_forward({71, 4, 4, 64}, {3, 3, 64, 128}, same).unfolded_rows, 71 * 4);
  EXPECT_EQ(scratch_of_forward({71, 4, 4, 64}, {3, 3, 64, 128}, same).end, 71 * 4 * 4 * 9 * 64 * 4);
  EXPECT_EQ(scratch_of_forward({2000, 4, 4, 64}, {3, 3, 64, 128}, same).unfolded_rows, 445);
  // Of which one takes more than that.
  EXPECT_EQ(scratch_of_forward({2, 4, 4, 900'000}, {3, 3, 900'000, 128}, same).unfolded_rows, 0);
}

TEST(ConvolutionScratch, HoldsNoWindowsWhereTheyAreMuchBesideTheWork) {
  const Attributes same{{"padding", I{1}}};
  EXPECT_EQ(scratch_of_forward({71, 9, 9, 64}, {3, 3, 64, 128}, same).unfolded_rows, 0);
  EXPECT_EQ(scratch_of_forward({71, 4, 4, 64}, {3, 3, 64, 64}, same).unfolded_rows, 0);
  EXPECT_GT(scratch_of_forward({71, 9, 9, 64}, {1, 1, 64, 128}, {{"stride", I{2}}}).unfolded_rows, 0);
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
