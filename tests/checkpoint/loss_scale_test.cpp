#include "libalpa/checkpoint/loss_scale.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TrainingOptions f16(double scale, std::int64_t steps) {
  TrainingOptions options;
  options.precision = Precision::f16;
  options.loss_scale = scale;
  options.loss_scale_steps = steps;
  return options;
}

TEST(LossScale, StartsAtTheUsualNumber) {
  TrainingOptions options;
  options.precision = Precision::f16;
  EXPECT_EQ(first_loss_scale(options), (LossScale{65536, 0, 0}));
}

TEST(LossScale, DoublesAfterSoManyGoodSteps) {
  const TrainingOptions options = f16(8, 3);
  LossScale scale = first_loss_scale(options);
  for (const LossScale expected : {LossScale{8, 1, 0}, {8, 2, 0}, {16, 0, 0}, {16, 1, 0}}) {
    scale = next_loss_scale(scale, true, options);
    EXPECT_EQ(scale, expected);
  }
}

TEST(LossScale, HalvesAtOnceAndCountsFromThereAgain) {
  const TrainingOptions options = f16(8, 3);
  LossScale scale{8, 2, 5};
  scale = next_loss_scale(scale, false, options);
  EXPECT_EQ(scale, (LossScale{4, 0, 6}));
  EXPECT_EQ(next_loss_scale(scale, true, options), (LossScale{4, 1, 6}));
}

TEST(LossScale, IsNeverBelowOne) {
  const TrainingOptions options = f16(1.5, 3);
  LossScale scale = next_loss_scale(first_loss_scale(options), false, options);
  EXPECT_EQ(scale.factor, 1);
  EXPECT_EQ(next_loss_scale(scale, false, options), (LossScale{1, 0, 2}));
}

TEST(LossScale, IsOneInOtherPrecisions) {
  TrainingOptions options = f16(8, 1);
  options.precision = Precision::bf16;
  const LossScale one = first_loss_scale(options);
  EXPECT_EQ(one, LossScale{});
  EXPECT_EQ(next_loss_scale(one, true, options), one);
  EXPECT_EQ(next_loss_scale(one, false, options), one);
}

}  // namespace
}  // namespace alpa
