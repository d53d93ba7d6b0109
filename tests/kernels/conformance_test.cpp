#include <gmock/gmock.h>

#include <limits>
#include <set>
#include <tuple>

#include "libalpa/base/error.h"
#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/make_kernel.h"
#include "libalpa/ops/catalog.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

using Parameter = std::tuple<Backend, std::string>;  // on it, the operator of that name

class Conformance : public ::testing::TestWithParam<Parameter> {
 protected:
  const OpDef& op() const { return op_catalog().find(std::get<1>(GetParam())); }
  std::vector<OpCase> cases() const { return cases_of(op()); }

  std::vector<Values> run(const KernelRun& kernel_run, std::span<const Values> operands) {
    return run_kernel(*device_, kernel_run, operands);
  }

 private:
  std::unique_ptr<Device> device_ = std::get<0>(GetParam()).make();
};

TEST_P(Conformance, KernelsAgreeWithTheLoopNest) {
  EXPECT_FALSE(cases().empty());
  for (const OpCase& c : cases())
    for (const DType dtype : types_of(c, std::get<0>(GetParam()).kind)) {
      SCOPED_TRACE(case_text(c) + ", t is " + std::string(dtype_name(dtype)));
      const PreparedCase p = prepare(c, dtype);
      expect_all_near(run(p.run(), p.values), p.expected(), p);
    }
}

TEST_P(Conformance, EqualRunsGiveEqualBits) {
  for (const OpCase& c : cases()) {
    SCOPED_TRACE(case_text(c));
    const PreparedCase p = prepare(c, DType::f32);
    EXPECT_EQ(run(p.run(), p.values), run(p.run(), p.values));
  }
}

class Updates : public Conformance {};

TEST_P(Updates, ChangeNothingWhereTheNormIsNotFinite) {
  for (const OpCase& c : cases())
    for (const DType dtype : types_of(c, std::get<0>(GetParam()).kind))
      for (const double norm :
           {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        SCOPED_TRACE(case_text(c));
        PreparedCase p = prepare(c, dtype);
        const auto scalars = std::ranges::find(p.operands, TensorType{DType::f32, {UpdateScalars::kCount}});
        const auto at = static_cast<std::size_t>(scalars - p.operands.begin());
        p.values[at + 1] = {norm};
        for (std::size_t i = 0; i < at; ++i)  // gradients
          if (std::ranges::find(p.op->overwrites, static_cast<int>(i)) == p.op->overwrites.end())
            p.values[i].assign(p.values[i].size(), norm);
        const std::vector<Values> after = run(p.run(), p.values);
        for (std::size_t r = 0; r < p.results.size(); ++r)
          if (const int state = p.op->overwritten(r); state >= 0) {
            EXPECT_EQ(after[r], p.values[state]);
          } else {  // 0 times the gradient, not what was there
            EXPECT_EQ(after[r], Values(after[r].size(), 0.0));
          }
      }
}

class Accumulating : public Conformance {};

TEST_P(Accumulating, AddsToAResultOfItsOwnTypeOrF32) {
  for (const OpCase& c : cases())
    for (const DType dtype : types_of(c, std::get<0>(GetParam()).kind))
      for (const DType sum : std::set{DType::f32, prepare(c, dtype).results[0].dtype}) {
        SCOPED_TRACE(case_text(c) + ", t is " + std::string(dtype_name(dtype)));
        PreparedCase p = prepare(c, dtype);
        p.results[0].dtype = sum;
        KernelRun adding = p.run();
        adding.accumulate = true;
        const Values before = rounded(uniform_values(element_count(p.results[0].shape), -1, 1, 1), sum);
        adding.results_before = {before};
        std::vector<Values> expected = p.expected();
        for (std::size_t i = 0; i < expected[0].size(); ++i) expected[0][i] += before[i];
        expect_all_near(run(adding, p.values), expected, p);
      }
}

std::vector<std::string> accumulating_ops() {
  std::vector<std::string> names;
  for (const OpDef* op : op_catalog().all())
    if (op->accumulates) names.emplace_back(op->name);
  return names;
}

using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(On, Conformance, ValuesIn(backends_with(op_names())), kBackendAndOp);
INSTANTIATE_TEST_SUITE_P(On, Updates,
                         ValuesIn(backends_with({"adafactor", "adafactor_factors", "adafactor_master",
                                                 "adafactor_moment", "adamw", "adamw_master", "sgd",
                                                 "sgd_master"})),
                         kBackendAndOp);
INSTANTIATE_TEST_SUITE_P(On, Accumulating, ValuesIn(backends_with(accumulating_ops())), kBackendAndOp);

class Refusal : public ::testing::TestWithParam<Backend> {};

TEST_P(Refusal, NamesTheOperatorAndTheTypes) {
  const auto device = GetParam().make();
  const TensorType ids{DType::i32, {3}};
  EXPECT_THAT(
      [&] {
        make_kernel(*device, op_catalog().find("gelu"), {{ids}, {ids}, {}});
      },
      ::testing::ThrowsMessage<Error>(
          ::testing::AllOf(::testing::HasSubstr("operator 'gelu' has no "),
                           ::testing::HasSubstr(" kernel for i32[3] -> i32[3]"))));
}

TEST_P(Refusal, SaysThatCpusDoNotComputeInF16) {
  const auto device = GetParam().make();
  const TensorType half{DType::f16, {3}};
  const auto make = [&] { make_kernel(*device, op_catalog().find("gelu"), {{half}, {half}, {}}); };
  if (device->kind() == DeviceKind::cuda) return make();
  EXPECT_THAT(make, ::testing::ThrowsMessage<Error>(
                        ::testing::HasSubstr("operator 'gelu' has no CPU kernel for f16[3] -> f16[3]")));
}

TEST_P(Refusal, NamesTheOperatorThatTheDeviceHasNoKernelFor) {
  const auto device = GetParam().make();
  for (const OpDef* op : op_catalog().all()) {
    if (has_kernel(device->kind(), *op)) continue;
    EXPECT_THAT([&] { make_kernel(*device, *op, {}); },
                ::testing::ThrowsMessage<Error>(
                    ::testing::HasSubstr("operator '" + std::string(op->name) + "' has no CUDA kernel")));
  }
}

INSTANTIATE_TEST_SUITE_P(On, Refusal, ValuesIn(kernel_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace alpa
