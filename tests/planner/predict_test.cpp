#include "libalpa/planner/predict.h"

#include <gtest/gtest.h>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/step_error.h"
#include "libalpa/schedule/schedule.h"
#include "tests/support/measured_profile.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// The deviation of the whole step, and the one that is predicted.
struct Deviations {
  double whole_s = 0, predicted_s = 0, step_s = 0;
};

Deviations deviations_of(int micro_batches) {
  const Lowered lowered = two_stages_of_two(4);
  Plan plan = lowered.plan;
  plan.micro_batches = micro_batches;
  const Program program = lower(lowered.graph, plan);
  const CostModel costs(measured_profile(program, small_cluster(4), [](const std::string& kind) {
    return 0.01 * (1 + static_cast<double>(kind.size() % 5));
  }));
  const Timeline timeline = simulate(program, costs, Overlap::none, true);
  return {step_error_s(program, timeline, costs),
          sureness(plan, lowered.graph, costs, timeline.step_s).error_s, timeline.step_s};
}

TEST(PredictedError, IsThatOfTheSimulatedStep) {
  const Deviations few = deviations_of(4);
  EXPECT_GT(few.whole_s, 1e-3 * few.step_s);
  EXPECT_DOUBLE_EQ(few.predicted_s, few.whole_s);
  // Of more the update and the first and last micro-batches are a smaller part.
  const Deviations many = deviations_of(64);
  EXPECT_NEAR(many.predicted_s, many.whole_s, 0.1 * many.whole_s);
}

TEST(Sureness, IsNotKnownWithoutMeasurements) {
  const Lowered lowered = two_stages_of_two(4);
  const auto of = [&](const CostModel& costs) { return sureness(lowered.plan, lowered.graph, costs, 1); };
  const Sureness none = of(CostModel(small_cluster(4)));
  EXPECT_EQ(none.error_s, 0);
  EXPECT_EQ(none.estimated_share, std::nullopt);
  const Sureness some = of(CostModel(
      measured_profile(lowered.program, small_cluster(4), [](const std::string&) { return 0.05; })));
  EXPECT_GT(some.error_s, 0);
  EXPECT_EQ(some.estimated_share, 0);
}

TEST(PredictSteady, IsNearTheWholeStepUnderEverySchedule) {
  for (const std::string& schedule : schedule_names(1))
    for (const int micro_batches : {8, 40, 200}) {
      Lowered lowered = four_stages(schedule);
      lowered.plan.micro_batches = micro_batches;
      const CostModel costs(small_cluster(4));
      Plan steady = lowered.plan;
      predict_steady(steady, lowered.graph, costs);
      predict(lowered.plan, lowered.graph, costs);
      const double step_s = lowered.plan.prediction.step_s;
      // Plans that are that near are simulated whole before one is chosen.
      EXPECT_NEAR(steady.prediction.step_s, step_s, 0.05 * step_s) << schedule << ", " << micro_batches;
      ASSERT_EQ(steady.prediction.meshes.size(), lowered.plan.prediction.meshes.size());
      for (const MeshIndex m : steady.prediction.meshes.indices())
        EXPECT_EQ(steady.prediction.meshes[m].memory, lowered.plan.prediction.meshes[m].memory) << schedule;
      for (const MeshPrediction& mesh : steady.prediction.meshes) {
        const MeshTime& time = mesh;
        EXPECT_GE(time.idle_s, 0) << schedule << ", " << micro_batches;
        const double sum_s = time.compute_s + time.collective_s + time.transfer_s + time.idle_s;
        EXPECT_NEAR(sum_s, steady.prediction.step_s, 1e-12 * step_s) << schedule << ", " << micro_batches;
      }
    }
}

}  // namespace
}  // namespace alpa
