// A step whose gradients overflow, on ranks that share its update in several ways.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/runtime/executor.h"
#include "tests/trainer/own_samples.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class SkippedUpdate : public testing::TestWithParam<TinyCase> {};

std::vector<std::vector<std::byte>> states_of(Executor& executor) {
  std::vector<std::vector<std::byte>> states;
  for (const StateTile& tile : executor.state_tiles()) {
    states.emplace_back(static_cast<std::size_t>(byte_count(tile.tile)));
    executor.read_state(tile, states.back().data());
  }
  return states;
}

TEST_P(SkippedUpdate, LeavesEveryStateOfEveryRankAsItWas) {
  const TinyTraining tiny(GetParam());
  const Program program = lower(tiny.graph(), tiny.plan());
  std::vector<std::vector<std::byte>> batch;
  for (const Input& input : tiny.graph().inputs)
    if (input.is_of_samples())  // token 0, and then 0 again
      batch.emplace_back(static_cast<std::size_t>(byte_count(value_of(tiny.graph(), input.value).type) *
                                                  program.micro_batches));
  const std::vector<std::span<const std::byte>> samples(batch.begin(), batch.end());
  run_on_threads(tiny.plan().devices(), [&](int, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(tiny.graph(), {&program}, *device, world, 1);
    initialize_states(executor, tiny.graph(), 1);
    const auto initial = states_of(executor);
    const OwnSamples own(executor.samples(), samples);
    StepInputs inputs{own.spans(), 1, {1e-3f, 0.1f, 0.05f, 1, 1}, 0};
    inputs.loss_scale = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(executor.run(inputs)->gradient_norm));
    EXPECT_EQ(states_of(executor), initial);
    inputs.loss_scale = 1e-3f;
    EXPECT_TRUE(std::isfinite(executor.run(inputs)->gradient_norm));
    EXPECT_NE(states_of(executor), initial);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Plans, SkippedUpdate,
    testing::Values(TinyCase{"gpt", "data-parallel", 2, 1},
                    TinyCase{"gpt", "zero-3", 2, 2, "1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"gpt", "tensor", 2, 1}, TinyCase{"gpt", "inter-only", 2, 4},
                    TinyCase{"gpt", "mixed", 4, 4, "1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"adafactor", "mixed", 4, 4, "1f1b", Rematerialize::never, Precision::bf16}),
    [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
