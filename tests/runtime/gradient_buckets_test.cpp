#include <gtest/gtest.h>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class TrainingInBuckets : public testing::TestWithParam<TinyCase> {
 protected:
  static TinyCase with(const std::string& sync) {
    TinyCase c = GetParam();
    c.sync = sync;
    return c;
  }
};

// The order in which devices' terms of an element are added up does not depend on where in a tensor it lies.
TEST_P(TrainingInBuckets, IsThatWithoutThemToTheBit) {
  for (const std::string sync : {"ddp", "one", "parts", "drawn-parts"}) {
    TinyTraining training(with(sync));
    ASSERT_FALSE(training.plan().sync.empty()) << sync;
    const TinyCurve curve = training.run_on_threads(5);
    training.set_sync({});
    const TinyCurve reference = training.run_on_threads(5);
    EXPECT_EQ(curve.losses, reference.losses);
    EXPECT_EQ(curve.norms, reference.norms);
    for (const auto& [name, values] : reference.states) EXPECT_EQ(curve.states.at(name), values) << name;
  }
}

TEST_P(TrainingInBuckets, IsTheSameInAnyOrderOfLanes) {
  TinyTraining training(with("ddp"));
  expect_same_bits_in_any_order(training);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, TrainingInBuckets,
    testing::Values(TinyCase{"gpt", "data-parallel", 2, 1}, TinyCase{"gpt", "data-parallel", 4, 2},
                    TinyCase{"gpt", "mixed", 4, 4, "zero-bubble"},
                    TinyCase{"gpt", "data x tensor", 4, 2, "1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"},
                    TinyCase{"wrn", "data-parallel", 2, 4}, TinyCase{"adafactor", "data-parallel", 2, 1}),
    [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
