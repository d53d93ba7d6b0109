#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "libalpa/kernels/cpu/bfloat16_product_cpu.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/cpu/widened_product_cpu.h"

namespace alpa {
namespace {

struct ProductRow {
  std::string name;
  std::int64_t rows, columns, sum;
  bool left_transposed = false, right_transposed = false;
  DType result = DType::f32;
  bool accumulate = false;
  std::int64_t batch = 1, gap = 0;  ///< elements between rows, in all three matrices
};

/// Small integers and quarters, whose sums of any order are exact in f32; `count` of them.
std::vector<Bfloat16> exact_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Bfloat16> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(to_bfloat16(static_cast<float>(static_cast<int>(random() % 17) - 8) / 4));
  return numbers;
}

class BfloatProducts : public testing::TestWithParam<ProductRow> {
 protected:
  MatrixLayout layout(bool transposed, std::int64_t down, std::int64_t across) const {
    return {transposed, (transposed ? down : across) + GetParam().gap};
  }
  static std::int64_t elements(const MatrixLayout& matrix, std::int64_t down, std::int64_t across) {
    return matrix.leading * (matrix.transposed ? across : down);
  }
  static std::int64_t place(const MatrixLayout& matrix, std::int64_t r, std::int64_t c) {
    return matrix.transposed ? c * matrix.leading + r : r * matrix.leading + c;
  }
};

/// By the definition; numbers are exact, so the one rounding is that of a result in bf16.
TEST_P(BfloatProducts, AreTheNaiveSums) {
  const ProductRow& c = GetParam();
  MatrixProduct product{c.rows,
                        c.columns,
                        c.sum,
                        layout(c.left_transposed, c.rows, c.sum),
                        layout(c.right_transposed, c.sum, c.columns),
                        c.columns + c.gap,
                        false,
                        {}};
  const std::int64_t left_step = elements(product.left, c.rows, c.sum),
                     right_step = elements(product.right, c.sum, c.columns),
                     result_step = product.result_leading * c.rows;
  if (c.batch > 1) product.batch = {{c.batch, left_step, right_step, result_step}};
  const std::vector<Bfloat16> left = exact_numbers(c.batch * left_step, 1),
                              right = exact_numbers(c.batch * right_step, 2),
                              before = exact_numbers(c.batch * result_step, 3);
  std::vector<float> expected;  // gaps keep what was there
  for (const Bfloat16 x : before) expected.push_back(to_float(x));
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t r = 0; r < c.rows; ++r)
      for (std::int64_t k = 0; k < c.columns; ++k) {
        float& y = expected[static_cast<std::size_t>(b * result_step + r * product.result_leading + k)];
        double sum = c.accumulate ? y : 0;
        for (std::int64_t i = 0; i < c.sum; ++i)
          sum += static_cast<double>(
                     to_float(left[static_cast<std::size_t>(b * left_step + place(product.left, r, i))])) *
                 to_float(right[static_cast<std::size_t>(b * right_step + place(product.right, i, k))]);
        y = static_cast<float>(sum);
        if (c.result == DType::bf16) y = to_float(to_bfloat16(y));
      }

  std::vector<std::unique_ptr<Bfloat16Product>> forms;
  forms.push_back(make_widened_product(product, c.result));
  forms.push_back(make_bfloat16_product(product, c.result));  // the same again without such instructions
  for (const auto& form : forms) {
    std::vector<Bfloat16> rounded = before;
    std::vector<float> whole(before.size());
    std::transform(before.begin(), before.end(), whole.begin(), [](Bfloat16 x) { return to_float(x); });
    const bool in_bf16 = c.result == DType::bf16;
    form->run(left.data(), right.data(),
              in_bf16 ? static_cast<void*>(rounded.data()) : static_cast<void*>(whole.data()), c.accumulate);
    // The processor's own may round a sum before it is added to what was there.
    const float rounding = form != forms[0] && in_bf16 && c.accumulate ? 1.0f / 128 : 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(in_bf16 ? to_float(rounded[i]) : whole[i], expected[i], rounding * std::abs(expected[i]))
          << (form == forms[0] ? "widened" : "as chosen") << ", element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Widened, BfloatProducts,
    testing::Values(ProductRow{"OfOneTile", 3, 5, 7}, ProductRow{"OfOneNumber", 1, 1, 1},
                    ProductRow{"OverTheEdgesOfTiles", 530, 517, 300},
                    ProductRow{"OfATransposedLeft", 140, 20, 270, true},
                    ProductRow{"OfATransposedRight", 20, 140, 270, false, true},
                    ProductRow{"OfBothTransposed", 33, 17, 257, true, true, DType::bf16},
                    ProductRow{"AddedInF32", 130, 129, 260, false, false, DType::f32, true},
                    ProductRow{"AddedInBf16", 130, 129, 260, false, true, DType::bf16, true},
                    ProductRow{"OfSeveralBatches", 9, 11, 13, false, false, DType::bf16, false, 5},
                    ProductRow{"WithGapsBetweenRows", 9, 11, 13, true, false, DType::f32, true, 3, 4}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace alpa
