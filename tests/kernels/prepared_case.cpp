#include "tests/kernels/prepared_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/reference.h"

namespace alpa {
namespace {

TensorType operand_type(const std::string& word, DType dtype) {
  const char letter = word[0];
  TensorType type{letter == 'i'                    ? DType::i32
                  : letter == 'b'                  ? DType::bf16
                  : letter == 't' || letter == 's' ? dtype
                                                   : DType::f32,
                  {}};
  std::istringstream extents(word.substr(1));
  char separator = 0;
  for (std::int64_t extent = 0; extents >> separator && extents >> extent;) type.shape.push_back(extent);
  return type;
}

}  // namespace

KernelRun PreparedCase::run() const {
  KernelRun run;
  run.op = op;
  run.operands = operands;
  run.results = results;
  run.attributes = attributes;
  run.point = kPoint;
  return run;
}

std::vector<Values> PreparedCase::expected() const { return reference(*op, call(), values, kPoint); }

PreparedCase prepare(const OpCase& c, DType dtype) {
  PreparedCase p{&op_catalog().find(c.op), {}, {}, c.attributes, {}};
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

std::vector<DType> types_of(const OpCase& c) {
  if (c.operands.find('t') == std::string::npos) return {DType::f32};
  return {DType::f32, DType::bf16};
}

void expect_near(const Values& actual, const Values& expected, DType stored, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  const double relative = stored == DType::bf16 ? 0x1p-8 : 1e-5;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * largest + relative * std::abs(expected[i]))
        << what << ", element " << i;
}

void expect_all_near(const std::vector<Values>& actual, const std::vector<Values>& expected,
                     const PreparedCase& p) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r)
    expect_near(actual[r], expected[r], p.results[r].dtype, "result " + std::to_string(r));
}

}  // namespace alpa
