// A search that has to end before it is done.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(StoppedSearch, OutOfTimeReturnsWhatItHasAndSaysSo) {
  PlannerOptions options;
  options.time_limit_s = 0;
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  EXPECT_TRUE(plan.prediction.hit_time_limit);
  EXPECT_GT(plan.prediction.step_s, 0);
}

TEST(StoppedSearch, OutOfTimeWithoutAnyPlanDoesNotSayThatThereIsNone) {
  PlannerOptions options;
  options.method = "search";
  options.time_limit_s = 0;
  EXPECT_THAT([&] { plan_quietly(small_model(), small_cluster(4), options); },
              ThrowsMessage<Error>(HasSubstr("no plan was found: the time limit of 0 s")));
}

/// Asks for a stop when the planner wants the graph for so many samples of a micro-batch.
PlanningModel model_that_stops(StopRequest& stop, std::int64_t at_samples) {
  PlanningModel model = small_model();
  model.graph = [&stop, at_samples, graph = model.graph](std::int64_t samples) {
    if (samples == at_samples) stop.ask();
    return graph(samples);
  };
  return model;
}

TEST(StoppedSearch, ReturnsTheBestPlanSoFarAndSaysSo) {
  StopRequest stop;
  PlannerOptions options;
  options.stop = &stop;
  options.threads = 1;  // else graphs are asked for before it is their turn
  testing::internal::CaptureStderr();
  const Plan plan = [&] {
    Log log("test", LogLevel::warning);
    return make_plan(model_that_stops(stop, 4), CostModel(small_cluster(4)), options, log);
  }();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the search was stopped in: baselines, 2 micro-batches"));
  EXPECT_TRUE(plan.prediction.hit_time_limit);
  EXPECT_GE(plan.micro_batches, 4);  // it came to no fewer
  EXPECT_GT(plan.prediction.step_s, 0);
}

TEST(StoppedSearch, BeforeAnyPlanSaysSo) {
  StopRequest stop;
  PlannerOptions options;
  options.stop = &stop;
  const PlanningModel model = model_that_stops(stop, 8);
  try {
    plan_quietly(model, small_cluster(4), options);
    ADD_FAILURE() << "there is a plan";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::stopped_early);
    EXPECT_THAT(error.happened(), HasSubstr("no plan was found yet: the search was stopped"));
  }
}

TEST(StoppedSearch, OutOfTimeBoundsNothingThatItDidNotComeTo) {
  PlannerOptions options;
  options.time_limit_s = 0;
  const Prediction cut = plan_quietly(small_model(), small_cluster(4), options).prediction;
  EXPECT_THAT(cut.bound_covers, HasSubstr("these stages on these meshes"));
}

}  // namespace
}  // namespace alpa
