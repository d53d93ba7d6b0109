#include <gtest/gtest.h>

#include "tests/kernels/backends.h"
#include "tests/kernels/small_training.h"

namespace alpa {
namespace {

class BackendTraining : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr int kSteps = 3;

  static std::vector<double> reference(const ModelDefinition& model) {
    return losses(*make_cpu_device(1), model, kSteps);
  }
  static std::vector<double> on_backend(const ModelDefinition& model) {
    return losses(*GetParam().make(), model, kSteps);
  }
};

TEST_P(BackendTraining, InF32HasTheLossesOfOneThread) {
  for (const SmallModel& m : kSmallModels) {
    const ModelDefinition model = small_model(m.base, m.dimensions, "f32");
    const std::vector<double> expected = reference(model), actual = on_backend(model);
    // Only the order of sums differs. The losses are of order 3, and AdamW's first steps are as large for
    // gradients that are mostly rounding error as for others.
    for (int step = 0; step < kSteps; ++step)
      EXPECT_NEAR(actual[step], expected[step], step == 0 ? 1e-5 : 1e-4) << m.name << ", step " << step;
  }
}

TEST_P(BackendTraining, InBf16IsCloseToOneThread) {
  for (const SmallModel& m : kSmallModels) {
    const ModelDefinition model = small_model(m.base, m.dimensions, "bf16");
    const std::vector<double> expected = reference(model), actual = on_backend(model);
    // Activations have eight bits, and sums in another order round the other way now and then.
    for (int step = 0; step < kSteps; ++step)
      EXPECT_NEAR(actual[step], expected[step], 0.02) << m.name << ", step " << step;
  }
}

/// Without checked memory: opening and closing it for each kernel takes longer than the kernels.
std::vector<Backend> fast_backends() {
  std::vector<Backend> backends = kernel_backends();
  std::erase_if(backends, [](const Backend& backend) { return backend.name == "checked_cpu"; });
  return backends;
}

INSTANTIATE_TEST_SUITE_P(On, BackendTraining, ::testing::ValuesIn(fast_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace alpa
