#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backends.h"
#include "tests/kernels/small_training.h"

namespace alpa {
namespace {

/// On one thread: the tensors are too small to share.
class Training : public ::testing::Test {
 protected:
  std::vector<double> losses_on_cpu(const ModelDefinition& model, int steps) {
    return losses(*device_, model, steps);
  }

 private:
  std::unique_ptr<Device> device_ = make_cpu_device(1);
};

TEST_F(Training, StartsAtTheLossOfGuessingAndLearnsAFixedBatch) {
  for (const SmallModel& m : kSmallModels)
    for (const char* precision : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(m.name) + " in " + precision);
      const std::vector<double> history = losses_on_cpu(small_model(m.base, m.dimensions, precision), 40);
      EXPECT_NEAR(history.front(), std::log(29.0), 0.1);
      EXPECT_LT(history.back(), 0.3);
    }
}

TEST_F(Training, InBf16StaysCloseToF32) {
  const std::vector<double> f32 = losses_on_cpu(small_model("gpt.toml", "", "f32"), 8);
  const std::vector<double> bf16 = losses_on_cpu(small_model("gpt.toml", "", "bf16"), 8);
  // Two percent: bf16 keeps eight bits of each activation, and the master weights keep the steps.
  for (std::size_t i = 0; i < f32.size(); ++i) EXPECT_NEAR(bf16[i], f32[i], 0.02 * f32[i]) << "step " << i;
}

}  // namespace
}  // namespace alpa
