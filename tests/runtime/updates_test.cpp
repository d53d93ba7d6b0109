#include <gtest/gtest.h>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class UpdatesThatDoNotWait : public testing::TestWithParam<TinyCase> {};

// No norm is as large as that bound, so that both do the same with each number, only not at the same time.
TEST_P(UpdatesThatDoNotWait, ForTheNormAreThoseThatDo) {
  TinyCase unclipped = GetParam(), clipped = GetParam();
  unclipped.gradient_clip = 0;
  clipped.gradient_clip = 1e30;
  const TinyTraining without(unclipped), with(clipped);
  const TinyCurve run = without.run_on_threads(5), reference = with.run_on_threads(5);
  EXPECT_EQ(run.losses, reference.losses);
  EXPECT_EQ(run.norms, reference.norms);
  EXPECT_GT(run.norms[0], 0);
  ASSERT_EQ(run.states.size(), reference.states.size());
  for (const auto& [name, values] : reference.states) EXPECT_EQ(run.states.at(name), values) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, UpdatesThatDoNotWait,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "mixed", 4, 4},
                    TinyCase{"gpt", "mixed", 4, 4, "split-1f1b", Rematerialize::always, Precision::bf16},
                    TinyCase{"gpt", "zero-3", 4, 1}, TinyCase{"gpt", "inter-only", 4, 4, "eager-1f1b"},
                    TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"}, TinyCase{"moe", "mixed", 4, 4},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"wrn", "data-parallel", 2, 4}),
    [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
