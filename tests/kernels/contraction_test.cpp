#include "libalpa/kernels/contraction.h"

#include <gtest/gtest.h>

#include <string>

namespace alpa {
namespace {

Contraction contraction(const std::string& equation, const Shape& left, const Shape& right) {
  return contraction_of(
      parse_rule(equation, std::vector<TensorType>{{DType::f32, left}, {DType::f32, right}}));
}

struct ProductCase {
  std::string equation;
  Shape left, right;
  std::int64_t rows, columns, sum, batch;
};

TEST(Contraction, OfLinearLayersAndTheirGradientsIsOneProduct) {
  const Shape x{2, 3, 5}, heads{2, 3, 4, 6}, weight{5, 4, 6}, logits{2, 3, 7}, table{7, 5};
  for (const auto& c : {ProductCase{"b s d, d h k -> b s h k", x, weight, 6, 24, 5, 1},
                        {"b s h k, d h k -> b s d", heads, weight, 6, 5, 24, 1},
                        {"b s d, b s h k -> d h k", x, heads, 5, 24, 6, 1},
                        {"b s h k, h k d -> b s d", heads, {4, 6, 5}, 6, 5, 24, 1},
                        {"b s d, h k d -> b s h k", x, {4, 6, 5}, 6, 24, 5, 1},
                        {"b s h k, b s d -> h k d", heads, x, 24, 5, 6, 1},
                        {"b s d, v d -> b s v", x, table, 6, 7, 5, 1},
                        {"b s v, v d -> b s d", logits, table, 6, 5, 7, 1},
                        {"b s v, b s d -> v d", logits, x, 7, 5, 6, 1},
                        {"b s d, d g k -> b s g k", {2, 3, 5}, {5, 1, 6}, 6, 6, 5, 1},
                        {"e c d, e d f -> e c f", {3, 4, 5}, {3, 5, 6}, 4, 6, 5, 3}}) {
    const auto product = matrix_product_of(contraction(c.equation, c.left, c.right));
    ASSERT_TRUE(product) << c.equation;
    EXPECT_EQ(product->rows, c.rows) << c.equation;
    EXPECT_EQ(product->columns, c.columns) << c.equation;
    EXPECT_EQ(product->sum, c.sum) << c.equation;
    EXPECT_EQ(trip_count(product->batch), c.batch) << c.equation;
    EXPECT_FALSE(product->swapped) << c.equation;
  }
}

TEST(Contraction, ReadsTransposedMatricesWhereTheyLie) {
  const auto product = matrix_product_of(contraction("k m, n k -> m n", {5, 3}, {4, 5}));
  ASSERT_TRUE(product);
  EXPECT_TRUE(product->left.transposed);
  EXPECT_EQ(product->left.leading, 3);
  EXPECT_TRUE(product->right.transposed);
  EXPECT_EQ(product->right.leading, 5);
  EXPECT_EQ(product->result_leading, 4);
}

TEST(Contraction, SwapsTheOperandsOfATransposedResult) {
  const auto product = matrix_product_of(contraction("m k, k n -> n m", {3, 5}, {5, 4}));
  ASSERT_TRUE(product);
  EXPECT_TRUE(product->swapped);
  EXPECT_EQ(product->rows, 4);
  EXPECT_EQ(product->columns, 3);
}

TEST(Contraction, WithLoopsThatDoNotMergeIsNoSingleProduct) {
  EXPECT_FALSE(matrix_product_of(contraction("a k c, k n -> c n a", {3, 4, 5}, {4, 6})));
  EXPECT_FALSE(matrix_product_of(contraction("m k l, l n k -> m n", {3, 4, 5}, {5, 6, 4})));
}

TEST(Contraction, OfLengthOneLoopsLeavesThemOut) {
  const Contraction c = contraction("b m k, k n -> b m n", {1, 3, 1}, {1, 4});
  EXPECT_TRUE(c.batch.empty());
  EXPECT_TRUE(c.sums.empty());
  EXPECT_EQ(c.rows.size(), 1u);
}

}  // namespace
}  // namespace alpa
