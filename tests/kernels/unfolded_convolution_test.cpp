#include <gtest/gtest.h>

#include "libalpa/ops/convolution_scratch.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

/// Images whose windows do not fit into the workspace at once, and of which one is cut.
constexpr std::int64_t kImages = 71;
const Attributes unfolded_settings{{"stride", std::int64_t{2}}, {"padding", std::int64_t{1}}};

/// The results for each image alone of an operator that has images as operands `of_images`.
std::vector<Values> of_each_image(Device& device, const PreparedCase& whole,
                                  const std::vector<std::size_t>& of_images) {
  std::vector<Values> results;
  for (std::int64_t image = 0; image < kImages; ++image) {
    PreparedCase one = whole;
    for (const std::size_t i : of_images) {
      one.operands[i].shape[0] = 1;
      const std::int64_t count = element_count(one.operands[i].shape);
      const auto begin = whole.values[i].begin() + image * count;
      one.values[i] = Values(begin, begin + count);
    }
    one.results = result_types(*one.op, one.call());
    results.push_back(run_kernel(device, one.run(), one.values)[0]);
  }
  return results;
}

void expect_several_parts(ConvolutionKind kind, const PreparedCase& p) {
  const std::int64_t rows = convolution_scratch(kind, p.call()).unfolded_rows;
  EXPECT_GT(rows, 0);
  EXPECT_LT(rows, kImages * 6);
  EXPECT_NE(rows % 6, 0);
}

TEST(UnfoldedConvolution, OfManyImagesIsThatOfEach) {
  const auto device = make_cpu_device(2);
  const PreparedCase p = prepare({"conv2d", "t[71x12x12x64] t[3x3x64x128]", unfolded_settings}, DType::f32);
  expect_several_parts(ConvolutionKind::forward, p);
  Values expected;
  for (const Values& image : of_each_image(*device, p, {0}))
    expected.insert(expected.end(), image.begin(), image.end());
  expect_near(run_kernel(*device, p.run(), p.values)[0], expected, DType::f32, "y");
}

TEST(UnfoldedConvolution, HasAGradientOfFiltersThatIsTheSumOverAllImages) {
  const auto device = make_cpu_device(2);
  Attributes attributes = unfolded_settings;
  attributes.set("size_p", std::int64_t{3});
  attributes.set("size_q", std::int64_t{3});
  const PreparedCase p =
      prepare({"conv2d_grad_weight", "t[71x12x12x64] t[71x6x6x128]", attributes}, DType::f32);
  expect_several_parts(ConvolutionKind::grad_weight, p);
  Values expected(static_cast<std::size_t>(element_count(p.results[0].shape)), 0.0);
  for (const Values& image : of_each_image(*device, p, {0, 1}))
    for (std::size_t i = 0; i < image.size(); ++i) expected[i] += image[i];
  expect_near(run_kernel(*device, p.run(), p.values)[0], expected, DType::f32, "the gradient");
}

}  // namespace
}  // namespace alpa
