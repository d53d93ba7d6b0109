#include <gmock/gmock.h>

#include <set>

#include "libalpa/base/error.h"
#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"
#include "tests/support/host_threads.h"

namespace alpa {
namespace {

class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  const OpDef& op() const { return op_catalog().find(GetParam()); }

  std::unique_ptr<Device> device_ = make_cpu_device(1), checked_ = make_checked_cpu_device(1);
};

TEST_P(Conformance, KernelsAgreeWithTheLoopNest) {
  EXPECT_FALSE(cases_of(op()).empty());
  for (const OpCase& c : cases_of(op()))
    for (const DType dtype : types_of(c)) {
      SCOPED_TRACE(case_text(c) + ", t is " + std::string(dtype_name(dtype)));
      const PreparedCase p = prepare(c, dtype);
      for (const int threads : {1, 2}) {
        const HostThreads hold(threads);
        expect_all_near(run_kernel(threads == 1 ? *checked_ : *device_, p.run(), p.values), p.expected(), p);
      }
    }
}

TEST_P(Conformance, EqualRunsGiveEqualBits) {
  const HostThreads hold(2);
  for (const OpCase& c : cases_of(op())) {
    SCOPED_TRACE(case_text(c));
    const PreparedCase p = prepare(c, DType::f32);
    EXPECT_EQ(run_kernel(*device_, p.run(), p.values), run_kernel(*device_, p.run(), p.values));
  }
}

class Accumulating : public Conformance {};

TEST_P(Accumulating, AddsToAResultOfItsOwnTypeOrF32) {
  const HostThreads hold(1);
  for (const OpCase& c : cases_of(op()))
    for (const DType dtype : types_of(c))
      for (const DType sum : std::set{DType::f32, prepare(c, dtype).results[0].dtype}) {
        SCOPED_TRACE(case_text(c) + ", t is " + std::string(dtype_name(dtype)));
        PreparedCase p = prepare(c, dtype);
        p.results[0].dtype = sum;
        KernelRun run = p.run();
        run.accumulate = true;
        run.result_before = rounded(uniform_values(element_count(p.results[0].shape), -1, 1, 1), sum);
        std::vector<Values> expected = p.expected();
        for (std::size_t i = 0; i < expected[0].size(); ++i) expected[0][i] += run.result_before[i];
        expect_all_near(run_kernel(*device_, run, p.values), expected, p);
      }
}

std::vector<std::string> accumulating_ops() {
  std::vector<std::string> names;
  for (const OpDef* op : op_catalog().all())
    if (op->accumulates) names.emplace_back(op->name);
  return names;
}

constexpr auto kOpName = [](const auto& op) { return op.param; };
INSTANTIATE_TEST_SUITE_P(Op, Conformance, ::testing::ValuesIn(op_names()), kOpName);
INSTANTIATE_TEST_SUITE_P(Op, Accumulating, ::testing::ValuesIn(accumulating_ops()), kOpName);

TEST(Kernels, AreRefusedForElementTypesTheyDoNotKnow) {
  const auto device = make_cpu_device(1);
  const TensorType ids{DType::i32, {3}};
  EXPECT_THAT(
      [&] {
        make_kernel(*device, op_catalog().find("gelu"), {{ids}, {ids}, {}});
      },
      ::testing::ThrowsMessage<Error>(
          ::testing::HasSubstr("operator 'gelu' has no CPU kernel for i32[3] -> i32[3]")));
}

}  // namespace
}  // namespace alpa
