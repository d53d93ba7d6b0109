#include "libalpa/trainer/learning_rate.h"

#include <gmock/gmock.h>

#include <cmath>

namespace alpa {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

TrainingOptions options(LearningRateSchedule schedule, std::int64_t warmup_steps, std::int64_t steps) {
  TrainingOptions o;
  o.schedule = schedule;
  o.warmup_steps = warmup_steps;
  o.steps = steps;
  o.learning_rate = 2;
  o.final_learning_rate = 0.1;
  return o;
}

struct Course {
  LearningRateSchedule schedule;
  std::int64_t warmup_steps, steps;
  std::vector<double> rates;  // from step 0 on
};

TEST(LearningRate, FollowsItsScheduleFromThePeakToTheFinalRate) {
  const double half = 2 * 0.55, quarter = 2 * (0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)));
  const Course table[] = {
      {LearningRateSchedule::constant, 0, 3, {2, 2, 2, 2}},
      {LearningRateSchedule::constant, 4, 5, {0.5, 1, 1.5, 2, 2, 2}},
      {LearningRateSchedule::linear, 0, 3, {2, half, 0.2, 0.2}},
      {LearningRateSchedule::linear, 2, 4, {1, 2, half, 0.2, 0.2}},
      {LearningRateSchedule::cosine, 0, 5, {2, quarter, half, 2.2 - quarter, 0.2, 0.2}},
      {LearningRateSchedule::cosine, 2, 4, {1, 2, half, 0.2, 0.2}},
      {LearningRateSchedule::cosine, 0, 1, {2, 0.2}},
      {LearningRateSchedule::linear, 4, 2, {0.5, 1, 1.5, 2, 0.2}},
  };
  for (const Course& course : table) {
    std::vector<double> rates;
    for (std::size_t step = 0; step < course.rates.size(); ++step)
      rates.push_back(learning_rate(options(course.schedule, course.warmup_steps, course.steps),
                                    static_cast<std::int64_t>(step)));
    // Rounding of a handful of operations in double.
    EXPECT_THAT(rates, Pointwise(DoubleNear(1e-14), course.rates));
  }
}

// The trapezoid of Haegele et al. (NeurIPS'24), and its form with a cosine: warm-up, stable, decay.
TEST(LearningRate, StaysAtItsPeakUntilTheStepsOfDecayAreLeft) {
  constexpr std::int64_t warmup = 5, steps = 40, decay = 10;
  for (const LearningRateSchedule schedule : {LearningRateSchedule::linear, LearningRateSchedule::cosine}) {
    TrainingOptions o = options(schedule, warmup, steps);
    o.decay_steps = decay;
    for (std::int64_t done = 1; done <= steps; ++done) {  // steps, this one among them
      const double left = static_cast<double>(steps - done) / decay;
      const double share = left >= 1 ? 1
                           : schedule == LearningRateSchedule::linear
                               ? left
                               : std::pow(std::sin(left * M_PI / 2), 2);
      const double expected =
          done < warmup ? 2 * static_cast<double>(done) / warmup : 0.2 + (2 - 0.2) * share;
      EXPECT_NEAR(learning_rate(o, done - 1), expected, 1e-14) << "step " << done;
    }
    EXPECT_DOUBLE_EQ(learning_rate(o, steps + 7), 0.2);
  }
}

TEST(LearningRate, FallsFromTheWarmUpOnWhereTheDecayIsLongerThanTheRest) {
  TrainingOptions o = options(LearningRateSchedule::cosine, 5, 40), longer = o;
  for (const std::int64_t decay : {35, 1000}) {
    longer.decay_steps = decay;
    for (std::int64_t step = 0; step < 50; ++step)
      EXPECT_EQ(learning_rate(longer, step), learning_rate(o, step)) << decay << ", step " << step;
  }
}

TEST(UpdateScalars, AreTheRateAndTheBiasCorrectionsOfTheStepAfter) {
  TrainingOptions o = options(LearningRateSchedule::constant, 0, 10);
  o.beta1 = 0.5;
  o.beta2 = 0.75;
  EXPECT_EQ(update_scalars(o, 0, 4, {}), (UpdateScalars{2, 0.5f, 0.25f, 0.25f, 1, 1}));
  EXPECT_EQ(update_scalars(o, 1, 1, {}), (UpdateScalars{2, 0.75f, 0.4375f, 1, 1, 2}));
  o.beta1 = 0;
  EXPECT_EQ(update_scalars(o, 0, 1, {}).bias_correction1, 1);
}

// Moments that three skipped steps did not change are those after one update fewer for each.
TEST(UpdateScalars, DoNotCountSkippedStepsAndUndoTheLossScale) {
  const TrainingOptions o = options(LearningRateSchedule::linear, 0, 10);
  const auto first = update_scalars(o, 0, 1, {}), after = update_scalars(o, 3, 1, {1024, 0, 3});
  EXPECT_EQ(after.learning_rate, static_cast<float>(learning_rate(o, 3)));
  EXPECT_EQ(after.bias_correction1, first.bias_correction1);
  EXPECT_EQ(after.bias_correction2, first.bias_correction2);
  EXPECT_EQ(after.per_loss_scale, 0x1p-10f);
}

TEST(UpdateScalars, KeepTheirPrecisionWhereBetaIsNearOne) {
  TrainingOptions o;
  o.beta2 = 1 - 1e-9;
  EXPECT_FLOAT_EQ(update_scalars(o, 0, 1, {}).bias_correction2, 1e-9f);
}

TEST(LearningRate, IsTheDefaultWhereNoneIsSet) {
  TrainingOptions o;
  o.schedule = LearningRateSchedule::constant;
  EXPECT_EQ(learning_rate_text(o), "0.0003 (the default) at every step");
  o.learning_rate = 1e-3;
  o.warmup_steps = 10;
  EXPECT_EQ(learning_rate_text(o), "rises to 0.001 in 10 steps, stays there");
  o.schedule = LearningRateSchedule::cosine;
  o.steps = 100;
  EXPECT_EQ(learning_rate_text(o), "rises to 0.001 in 10 steps, falls to 0.0001 by step 100 (cosine)");
  o.schedule = LearningRateSchedule::linear;
  o.warmup_steps = 0;
  o.decay_steps = 20;
  EXPECT_EQ(learning_rate_text(o), "0.001, in the last 20 steps falls to 0.0001 by step 100 (linear)");
  o.warmup_steps = 200;
  EXPECT_EQ(learning_rate_text(o), "rises to 0.0005 by step 100, within a warm-up of 200 steps to 0.001");
}

TEST(EndedSchedule, IsWarnedOfWhereTheRunGoesOnAfterIt) {
  TrainingOptions options;
  options.steps = 200;
  options.learning_rate = 1e-3;
  options.final_learning_rate = 0.1;
  EXPECT_EQ(ended_schedule_text(options, 200), "");
  EXPECT_EQ(
      ended_schedule_text(options, 400),
      "the learning rate stays at 0.0001 from step 200 on: its schedule ends there ([training] steps), the "
      "run at step 400 (--steps)");
  options.schedule = LearningRateSchedule::constant;
  EXPECT_EQ(ended_schedule_text(options, 400), "");
}

}  // namespace
}  // namespace alpa
