#include <gtest/gtest.h>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

std::size_t linear_operands(const PreparedCase& p) {
  return std::min(p.op->linear_operands, p.operands.size());
}

/// The case with other values in the operands that the operator is linear in. Of the others nothing is asked.
PreparedCase with_other_terms(PreparedCase p) {
  for (std::size_t i = 0; i < linear_operands(p); ++i)
    p.values[i] = rounded(uniform_values(element_count(p.operands[i].shape), -1, 1, 500 + i), DType::f32);
  return p;
}

PreparedCase with_sums(PreparedCase x, const PreparedCase& y) {
  for (std::size_t i = 0; i < linear_operands(x); ++i) {
    for (std::size_t e = 0; e < x.values[i].size(); ++e) x.values[i][e] += y.values[i][e];
    x.values[i] = rounded(x.values[i], DType::f32);
  }
  return x;
}

class Linear : public ::testing::TestWithParam<std::string> {};

/// Partial values pass through these operators unreduced. Sums of two f32 of order 1 round once, which the
/// tolerance of one run covers.
TEST_P(Linear, OperatorsGiveForASumTheSumOfWhatTheyGiveForItsTerms) {
  const auto device = make_cpu_device(1);
  for (const OpCase& c : cases_of(op_catalog().find(GetParam()))) {
    SCOPED_TRACE(case_text(c));
    const PreparedCase x = prepare(c, DType::f32), y = with_other_terms(x), sum = with_sums(x, y);
    std::vector<Values> expected = run_kernel(*device, x.run(), x.values);
    const std::vector<Values> more = run_kernel(*device, y.run(), y.values);
    for (std::size_t r = 0; r < expected.size(); ++r)
      for (std::size_t e = 0; e < expected[r].size(); ++e) expected[r][e] += more[r][e];
    expect_all_near(run_kernel(*device, sum.run(), sum.values), expected, x);
  }
}

std::vector<std::string> linear_ops() {
  std::vector<std::string> names;
  for (const OpDef* op : op_catalog().all())
    if (op->linear_operands > 0) names.emplace_back(op->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Op, Linear, ::testing::ValuesIn(linear_ops()), kOpName);

}  // namespace
}  // namespace alpa
