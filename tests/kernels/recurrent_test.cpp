#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

/// Three sequences of 4, 0 and 2 of 5 steps, with 3 hidden numbers.
const Values lengths{4, 0, 2};
const std::size_t steps = 5, width = 3;

/// The elements of a tensor [b s ...] that lie in the padding.
std::vector<std::size_t> padding_of(const Values& tensor) {
  const std::size_t per_step = tensor.size() / (lengths.size() * steps);
  std::vector<std::size_t> elements;
  for (std::size_t i = 0; i < tensor.size(); ++i)
    if (static_cast<double>(i / per_step % steps) >= lengths[i / per_step / steps]) elements.push_back(i);
  return elements;
}

PreparedCase recurrence(const std::string& op, std::int64_t reverse) {
  PreparedCase p = prepare({op,
                            op == "lstm" ? "t[3x5x4x3] t[3x4x3] i[3]" : "t[3x5x3x3] t[3x3x3] t[3x3] i[3]",
                            {{"reverse", reverse}},
                            6},
                           DType::f32);
  p.values.back() = lengths;
  return p;
}

class Recurrence : public testing::TestWithParam<std::string> {};

TEST_P(Recurrence, TakesAndGivesNothingBeyondTheLengths) {
  const auto device = make_cpu_device(1);
  for (const std::int64_t reverse : {0, 1}) {
    PreparedCase p = recurrence(GetParam(), reverse);
    const std::vector<Values> results = run_kernel(*device, p.run(), p.values);
    for (const Values& result : results)
      for (const std::size_t i : padding_of(result)) EXPECT_EQ(result[i], 0);
    for (const std::size_t i : padding_of(p.values[0]))
      p.values[0][i] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(run_kernel(*device, p.run(), p.values), results);
  }
}

/// In reverse is forwards over the turned sequence: of the longest sample here, its four steps. Not to the
/// bit: how many samples a step has, and so the order in which a product adds up, differs. A step rounds what
/// lies within +-1 in some ten operations, and what it rounds goes on into the steps after it.
TEST_P(Recurrence, InReverseBeginsAtTheLastStep) {
  const auto device = make_cpu_device(1);
  PreparedCase p = recurrence(GetParam(), 1);
  const Values backwards = run_kernel(*device, p.run(), p.values)[0];
  p.attributes.set("reverse", std::int64_t{0});
  const Values gates = p.values[0];
  const std::size_t row = gates.size() / (lengths.size() * steps);
  for (std::size_t t = 0; t < 4; ++t)
    std::copy_n(gates.begin() + static_cast<std::ptrdiff_t>((3 - t) * row), row,
                p.values[0].begin() + static_cast<std::ptrdiff_t>(t * row));
  const Values forwards = run_kernel(*device, p.run(), p.values)[0];
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t j = 0; j < width; ++j)
      EXPECT_NEAR(forwards[t * width + j], backwards[(3 - t) * width + j],
                  4 * 10 * std::numeric_limits<float>::epsilon());
}

INSTANTIATE_TEST_SUITE_P(Op, Recurrence, testing::Values("gru", "lstm"),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace alpa
