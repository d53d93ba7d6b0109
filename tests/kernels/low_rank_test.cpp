#include "libalpa/graph/low_rank.h"

#include <gtest/gtest.h>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

Values run_low_rank(const std::string& op, const std::vector<TensorType>& types,
                    const std::vector<Values>& values) {
  const auto device = make_cpu_device(1);
  const OpDef& of = op_catalog().find(op);
  const PreparedCase p{&of, types, result_types(of, {types, {}}), {}, values};
  return run_kernel(*device, p.run(), p.values)[0];
}

TEST(LowRank, DividesATensorWhereItsFactorsHaveTheFewestElements) {
  EXPECT_EQ(low_rank_rows({768, 3072}, 4), 1);
  EXPECT_EQ(low_rank_rows({768, 12, 64}, 4), 1);     // 768 + 768
  EXPECT_EQ(low_rank_rows({12, 64, 768}, 4), 2);     // likewise
  EXPECT_EQ(low_rank_rows({3, 3, 256, 512}, 4), 3);  // 2304 + 512
  EXPECT_EQ(low_rank_rows({768}, 4), 0);
}

TEST(OrthonormalColumns, MakesColumnsZeroThatDependOnOthers) {
  // The third column is the sum of the first two, the fourth none.
  const TensorType type{DType::f32, {3, 4}};
  const Values q = run_low_rank("orthonormal_columns", {type}, {{3, 0, 3, 0, 4, 0, 4, 0, 0, 2, 2, 0}});
  const Values expected{0.6, 0, 0, 0, 0.8, 0, 0, 0, 0, 1, 0, 0};
  ASSERT_EQ(q.size(), expected.size());
  for (std::size_t i = 0; i < q.size(); ++i) EXPECT_NEAR(q[i], expected[i], 1e-7) << i;  // f32
}

TEST(RenewedColumns, KeepsColumnsThatWouldBeZerosFromThenOn) {
  const TensorType type{DType::f32, {2, 3}};
  const Values factor =
      run_low_rank("renewed_columns", {type, type}, {{1, 2, 3, 4, 5, 6}, {7, 0, 0, 8, 0, 9}});
  EXPECT_EQ(factor, (Values{7, 2, 0, 8, 5, 9}));
}

}  // namespace
}  // namespace alpa
