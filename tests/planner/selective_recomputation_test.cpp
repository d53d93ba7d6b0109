#include <gmock/gmock.h>

#include <string>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/pin.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

/// On one device, with that much memory.
Plan serial_plan(Rematerialize rematerialize, std::int64_t memory_bytes = 1 << 30,
                 PlannerEffort effort = PlannerEffort::thorough) {
  Cluster cluster = small_cluster(1);
  cluster.memory_bytes = memory_bytes;
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = 1;
  options.rematerialize = rematerialize;
  options.effort = effort;
  return plan_quietly(small_model(), cluster, options);
}

std::int64_t arena_of(const Plan& plan) { return plan.prediction.meshes[0_m].memory.total; }

TEST(SelectiveRecomputation, IsBetweenNoneAndFullInTimeAndMemory) {
  const Plan none = serial_plan(Rematerialize::never), full = serial_plan(Rematerialize::always),
             selective = serial_plan(Rematerialize::selective);
  EXPECT_LT(arena_of(selective), arena_of(none));
  EXPECT_LT(arena_of(full), arena_of(selective));
  EXPECT_GT(selective.prediction.step_s, none.prediction.step_s);
  EXPECT_LT(selective.prediction.step_s, full.prediction.step_s);
}

/// Of plans on one device that fit, with any number of layers that are recomputed fully.
double least_step_of_full(std::int64_t memory_bytes) {
  double least = infinity;
  for (int recomputed = 0; recomputed <= 4; ++recomputed) {
    Cluster cluster = small_cluster(1);
    cluster.memory_bytes = memory_bytes;
    PlannerOptions options;
    options.pin =
        parse_pin("[[stage]]\nlayers = 4\nrecomputed_layers = " + std::to_string(recomputed), "pin");
    least = std::min(least, plan_quietly(small_model(), cluster, options).prediction.step_s);
  }
  return least;
}

TEST(SelectiveRecomputation, IsChosenWhereItSavesEnough) {
  const std::int64_t memory = arena_of(serial_plan(Rematerialize::selective));
  const double full_s = least_step_of_full(memory);
  const Plan normal = serial_plan(Rematerialize::automatic, memory, PlannerEffort::normal),
             thorough = serial_plan(Rematerialize::automatic, memory);
  for (const Plan* plan : {&normal, &thorough}) {
    EXPECT_GT(plan->stages[0_s].recomputed_layers, 0);
    EXPECT_EQ(plan->stages[0_s].recompute_form, RecomputeForm::selective);
    EXPECT_LT(plan->prediction.step_s, full_s);
    EXPECT_LE(arena_of(*plan), memory);
  }
  EXPECT_LE(thorough.prediction.step_s, normal.prediction.step_s);
  // With normal effort it is searched for too, as it is so much faster: no bound leaves it out.
  for (const Plan* plan : {&normal, &thorough})
    EXPECT_THAT(plan->prediction.bound_covers, testing::Not(HasSubstr("without selective")));
}

}  // namespace
}  // namespace alpa
