// Whole plans on a GPU: the arena, the inputs' way there, the kernels, the losses' way back.
#include <gtest/gtest.h>

#include "tests/kernels/backends.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

constexpr int kSteps = 5;

class GpuTraining : public testing::TestWithParam<const char*> {};

TEST_P(GpuTraining, HasTheLossesOfTheCpu) {
  const TinyTraining serial({GetParam(), "serial", 1, 2});
  const TinyCurve cpu = serial.run_on_threads(kSteps);
  const std::unique_ptr<Device> device = kernel_backends().front().make();
  const std::unique_ptr<Communicator> alone = make_self_communicator();
  const TinyCurve gpu = serial.run(kSteps, *device, *alone);
  ASSERT_NE(cpu.losses.back(),
            cpu.losses.front());  // labels of graphs are drawn, and not learnt in five steps
  // Sums of f32 in another order and exponentials that differ in the last bits, amplified by the training
  // steps. Among CPU plans, which have the exponentials in common, losses differ by less than 1e-5.
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-4 * cpu.losses[i]) << "step " << i;
    EXPECT_NEAR(gpu.norms[i], cpu.norms[i], 5e-3 * cpu.norms[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTraining,
                         testing::Values("gpt", "llama", "mlp", "bert", "powersgd", "delayed", "tree_lstm",
                                         "tree_rounds", "graph_gru"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace alpa
