#include "libalpa/kernels/row_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

/// 3 groups of 2 samples with room for 29 vertices each: kernels are prepared for every second number of
/// rows up to 58.
constexpr std::int64_t kGroup = 2, kGroups = 3, kVertices = 29, kRoom = kGroup * kVertices;

/// That there are so many of the step's groups, the third to fifth of which are the tensors'.
constexpr std::int32_t kGroupedRows[] = {58, 58, 17, 58, 1};
constexpr std::int64_t kFirstGroup = 2;

/// What is looked at of a group: an even number of rows.
std::int64_t looked_at(std::int64_t group) { return (kGroupedRows[kFirstGroup + group] + 1) / 2 * 2; }

struct RowCase {
  std::string op, operands;
  Attributes attributes;
  int operand;  ///< that has rows
  int ids = 0;
};

class RowGroups : public ::testing::TestWithParam<RowCase> {};

/// Sets what is not looked at.
void set_others(Values& values, const TensorType& type, double to) {
  const std::size_t width = values.size() / (kGroups * kRoom);
  ASSERT_EQ(element_count(type.shape), std::ssize(values));
  for (std::int64_t g = 0; g < kGroups; ++g)
    for (std::int64_t row = looked_at(g); row < kRoom; ++row)
      std::fill_n(values.begin() + (g * kRoom + row) * static_cast<std::int64_t>(width), width, to);
}

TEST_P(RowGroups, LookAtTheRowsThatAreThereAlone) {
  const RowCase& c = GetParam();
  const PreparedCase p = prepare({c.op, c.operands, c.attributes, c.ids}, DType::f32);
  KernelRun plain = p.run(), grouped = p.run();
  set_vertex_rows(grouped.attributes, {c.operand, kGroup, kRoom});
  grouped.point.first_sample = kFirstGroup * kGroup;
  grouped.point.group_rows = kGroupedRows;
  const ShardingRule rule = rule_of(*p.op, p.call());
  const RowFactors factors = row_factors(rule, c.operand).value();

  std::vector<Values> with_zeros = p.values, with_nan = p.values;
  for (std::size_t i = 0; i < p.operands.size(); ++i) {
    if (!factors.lead(rule.operands[i])) continue;
    set_others(with_zeros[i], p.operands[i], 0);
    set_others(with_nan[i], p.operands[i],
               p.operands[i].dtype == DType::i32 ? 0 : std::numeric_limits<double>::quiet_NaN());
  }
  for (const bool adds : {false, true}) {
    if (adds && !p.op->accumulates) continue;
    for (KernelRun* const run : {&plain, &grouped}) {
      run->accumulate = adds;
      run->results_before = {Values(static_cast<std::size_t>(element_count(p.results[0].shape)), 2.0)};
    }
    for (const Backend& backend : kernel_backends()) {
      if (!has_kernel(backend.kind, *p.op)) continue;
      const auto device = backend.make();
      std::vector<Values> expected = run_kernel(*device, plain, with_zeros);
      const std::vector<Values> actual = run_kernel(*device, grouped, with_nan);
      for (std::size_t r = 0; r < actual.size(); ++r) {
        if (factors.lead(rule.results[r])) set_others(expected[r], p.results[r], adds ? 2.0 : 0.0);
        for (std::size_t i = 0; i < actual[r].size(); ++i)
          ASSERT_NEAR(actual[r][i], expected[r][i], 1e-5 * (1 + std::abs(expected[r][i])))
              << backend.name << ", element " << i;
      }
    }
  }
}

Attributes equation_of(const std::string& text) { return {{"equation", text}}; }

INSTANTIATE_TEST_SUITE_P(
    Operators, RowGroups,
    ::testing::Values(RowCase{"einsum", "t[6x29x5] t[5x7]", equation_of("b v d, d e -> b v e"), 0},
                      RowCase{"einsum", "t[7x5] t[6x29x5]", equation_of("e d, b v d -> b v e"), 1},
                      RowCase{"einsum", "t[6x29x5] t[6x29x7]", equation_of("b v d, b v e -> d e"), 0},
                      RowCase{"bias_add", "t[6x29x5] t[5]", {}, 0}, RowCase{"sigmoid", "t[6x29x5]", {}, 0},
                      RowCase{"mul", "t[6x29x5] t[6x29x5]", {}, 0},
                      RowCase{"reduce_leading", "t[6x29x5]", {{"keep", std::int64_t{1}}}, 0},
                      RowCase{"reduce_sum", "t[6x29]", {}, 0},
                      RowCase{"embedding", "t[11x5] i[6x29]", {}, 1, 11},
                      RowCase{"embedding_grad", "t[6x29x5] i[6x29]", {{"size_v", std::int64_t{11}}}, 0, 11},
                      RowCase{"cross_entropy", "t[6x29x7] i[6x29] f[6x29] p[6x29]", {}, 0, 7},
                      RowCase{"rms_norm", "t[6x29x8] p[8]", {{"epsilon", 1e-6}}, 0}),
    [](const auto& test) { return test.param.op + std::to_string(test.index); });

TEST(RowGroupsInOneTile, DrawForARowWhateverTheGroupsBesideIt) {
  const PreparedCase p =
      prepare({"dropout", "t[6x29x5]", {{"rate", 0.5}, {"stream", std::int64_t{1}}}, 0}, DType::f32);
  KernelRun whole = p.run();
  set_vertex_rows(whole.attributes, {0, kGroup, kRoom});
  whole.point.first_sample = 0;
  const auto device = kernel_backends()[0].make();
  const Values all = run_kernel(*device, whole, p.values)[0];
  KernelRun part = whole;
  const Shape origin{4, 0, 0}, extent{2, 29, 5};
  part.operands[0].shape = part.results[0].shape = extent;
  part.operand_origins = part.result_origins = {origin};
  part.operand_wholes = part.result_wholes = {p.operands[0].shape};
  const std::vector<Values> last{slice(p.values[0], p.operands[0].shape, origin, extent)};
  EXPECT_EQ(run_kernel(*device, part, last)[0], slice(all, p.operands[0].shape, origin, extent));
  part.operand_origins = part.result_origins = part.operand_wholes = part.result_wholes = {};
  part.point.first_sample = 4;
  EXPECT_EQ(run_kernel(*device, part, last)[0], slice(all, p.operands[0].shape, origin, extent))
      << "a micro-batch of its own";
}

}  // namespace
}  // namespace alpa
