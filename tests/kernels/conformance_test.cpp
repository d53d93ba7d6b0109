#include <gmock/gmock.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/support/interpreter.h"
#include "tests/support/kernel_runner.h"

namespace alpa {
namespace {

const RunPoint kPoint{.seed = 42, .step = 7, .first_sample = 3};

/// A case with its letters replaced by types and values.
struct Prepared {
  const OpDef* op;
  std::vector<TensorType> operands, results;
  Attributes attributes;
  std::vector<Values> values;

  OpCall call() const { return {operands, attributes}; }
  KernelRun run() const {
    KernelRun run;
    run.op = op;
    run.operands = operands;
    run.results = results;
    run.attributes = attributes;
    run.point = kPoint;
    return run;
  }
  std::vector<Values> expected() const { return reference(*op, call(), values, kPoint); }
};

TensorType operand_type(const std::string& word, DType dtype) {
  const char letter = word[0];
  TensorType type{letter == 'i' ? DType::i32 : letter == 'b' ? DType::bf16 : letter == 't' || letter == 's' ? dtype : DType::f32, {}};
  std::istringstream extents(word.substr(1));
  for (char separator; extents >> separator && separator != ']';) {
    std::int64_t extent = 0;
    if (extents >> extent) type.shape.push_back(extent);
    else break;
  }
  return type;
}

Prepared prepare(const OpCase& c, DType dtype) {
  Prepared p{&op_catalog().find(c.op), {}, {}, c.attributes, {}};
  std::istringstream words(c.operands);
  for (std::string word; words >> word;) {
    const TensorType type = operand_type(word, dtype);
    const std::int64_t count = element_count(type.shape);
    const std::uint64_t seed = 100 + p.values.size();
    Values values = word[0] == 'i'   ? uniform_values(count, -1, c.ids, seed)
                    : word[0] == 'p' ? uniform_values(count, 0.5, 1.5, seed)
                                     : uniform_values(count, -1, 1, seed);
    if (word[0] == 'i')
      for (double& id : values) id = std::floor(id);
    p.values.push_back(rounded(values, type.dtype));
    p.operands.push_back(type);
  }
  p.results = result_types(*p.op, p.call());
  return p;
}

/// Elements are sums of up to some hundred f32 products of order 1; each rounding of the result to bf16 adds 2^-9 of it.
void expect_near(const Values& actual, const Values& expected, DType stored, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  const double relative = stored == DType::bf16 ? 0x1p-8 : 1e-5;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * largest + relative * std::abs(expected[i])) << what << ", element " << i;
}

void expect_all_near(const std::vector<Values>& actual, const std::vector<Values>& expected, const Prepared& p) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r)
    expect_near(actual[r], expected[r], p.results[r].dtype, "result " + std::to_string(r));
}

/// The two element types, or one where the case has no operand that varies.
std::vector<DType> types_of(const OpCase& c) {
  if (c.operands.find('t') == std::string::npos) return {DType::f32};
  return {DType::f32, DType::bf16};
}

class Conformance : public ::testing::TestWithParam<OpCase> {
 protected:
  ~Conformance() override { omp_set_num_threads(threads_before_); }

  std::unique_ptr<Device> device_ = make_cpu_device(1), checked_ = make_checked_cpu_device(1);

 private:
  int threads_before_ = omp_get_max_threads();
};

TEST_P(Conformance, KernelsAgreeWithTheLoopNest) {
  for (const DType dtype : types_of(GetParam())) {
    SCOPED_TRACE(dtype_name(dtype));
    const Prepared p = prepare(GetParam(), dtype);
    omp_set_num_threads(1);
    expect_all_near(run_kernel(*checked_, p.run(), p.values), p.expected(), p);
    omp_set_num_threads(3);
    expect_all_near(run_kernel(*device_, p.run(), p.values), p.expected(), p);
  }
}

TEST_P(Conformance, EqualRunsGiveEqualBits) {
  omp_set_num_threads(3);
  const Prepared p = prepare(GetParam(), DType::f32);
  EXPECT_EQ(run_kernel(*device_, p.run(), p.values), run_kernel(*device_, p.run(), p.values));
}

class Accumulating : public Conformance {};

TEST_P(Accumulating, AddsToAResultOfItsOwnTypeOrF32) {
  for (const DType dtype : types_of(GetParam()))
    for (const DType sum : std::set{DType::f32, prepare(GetParam(), dtype).results[0].dtype}) {
      SCOPED_TRACE(dtype_name(dtype));
      Prepared p = prepare(GetParam(), dtype);
      p.results[0].dtype = sum;
      KernelRun run = p.run();
      run.accumulate = true;
      run.result_before = rounded(uniform_values(element_count(p.results[0].shape), -1, 1, 1), sum);
      std::vector<Values> expected = p.expected();
      for (std::size_t i = 0; i < expected[0].size(); ++i) expected[0][i] += run.result_before[i];
      expect_all_near(run_kernel(*device_, run, p.values), expected, p);
    }
}

std::vector<OpCase> accumulating_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& c : op_cases())
    if (op_catalog().find(c.op).accumulates) cases.push_back(c);
  return cases;
}

constexpr auto kCaseName = [](const auto& c) { return c.param.op + "_" + std::to_string(c.index); };
INSTANTIATE_TEST_SUITE_P(Case, Conformance, ::testing::ValuesIn(op_cases()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Case, Accumulating, ::testing::ValuesIn(accumulating_cases()), kCaseName);

TEST(Conformance, EveryOperatorHasCases) {
  std::set<std::string> covered;
  for (const OpCase& c : op_cases()) covered.insert(c.op);
  for (const OpDef* op : op_catalog().all()) EXPECT_TRUE(covered.contains(std::string(op->name))) << op->name;
}

}  // namespace
}  // namespace alpa
