#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// Model, method, devices, micro-batches, schedule.
class TrainingInBuckets : public testing::TestWithParam<TinyCase> {
 protected:
  static TinyCase with(const std::string& sync) {
    TinyCase c = GetParam();
    c.sync = sync;
    return c;
  }
};

// Of two devices' terms the sum does not depend on where in a collective they are.
TEST_P(TrainingInBuckets, IsThatWithoutThem) {
  const TinyCurve reference = TinyTraining(with("each")).run_on_threads(5);
  for (const std::string sync : {"ddp", "one"}) {
    const TinyTraining training(with(sync));
    ASSERT_FALSE(training.plan().sync.empty()) << sync;
    const TinyCurve curve = training.run_on_threads(5);
    ASSERT_EQ(curve.losses.size(), reference.losses.size());
    for (std::size_t step = 0; step < curve.losses.size(); ++step) {
      EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]));
      EXPECT_NEAR(curve.norms[step], reference.norms[step], 1e-5 * reference.norms[step]);
    }
    if (GetParam().devices == 2) {
      EXPECT_EQ(curve.losses, reference.losses);
      for (const auto& [name, values] : reference.states) EXPECT_EQ(curve.states.at(name), values) << name;
    }
  }
}

TEST_P(TrainingInBuckets, IsTheSameInAnyOrderOfLanes) {
  TinyTraining training(with("ddp"));
  const TinyCurve listed = training.run_on_threads(3);
  EXPECT_EQ(training.run_on_threads(3, [] { return make_checked_cpu_device(1); }).losses, listed.losses);
  training.set_overlap(Overlap::all);
  EXPECT_EQ(training.run_on_threads(3).losses, listed.losses);
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
