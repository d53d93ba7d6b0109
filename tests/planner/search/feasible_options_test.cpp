#include "libalpa/planner/search/feasible_options.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/make_plan.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FeasibleOptions, NamesTheStageAndTheShortfall) {
  Cluster cluster = small_cluster(2);
  cluster.memory_bytes = 60000;
  EXPECT_THAT([&] { plan_quietly(small_model(), cluster); },
              ThrowsMessage<Error>(testing::AllOf(
                  HasSubstr("no plan fits: the stage of layers"),
                  ContainsRegex("at least \\(parameters .*, the optimizer's states .* and sums of gradients "
                                ".*\\), 58.59 KiB is there: .* short"))));
}

// With AdamW each parameter lasts with two moments and the sum of its gradients, however devices share them.
TEST(FeasibleOptions, NamesWhatLastsWhereThatAloneIsTooMuch) {
  const Graph graph = small_model().graph(1);
  std::int64_t parameters = 0;
  for (const State& state : graph.states)
    if (state.is_parameter) parameters += element_count(value_of(graph, state.value).type.shape);
  const std::int64_t gradients =
      parameters + 32 * 16;  // of the table, which two layers use, there are two sums
  Cluster cluster = small_cluster(2);
  cluster.memory_bytes = 4 * (3 * parameters + gradients) / 2 - 1024;
  EXPECT_THAT(
      [&] { plan_quietly(small_model(), cluster); },
      ThrowsMessage<Error>(testing::AllOf(
          HasSubstr(fmt::format("parameters {}, the optimizer's states {} and sums of gradients {} take {} "
                                "on each of 2 devices",
                                bytes_text(4 * parameters), bytes_text(2 * 4 * parameters),
                                bytes_text(4 * gradients), bytes_text(4 * (3 * parameters + gradients) / 2))),
          HasSubstr("1.00 KiB short"), HasSubstr("try: 3 devices or more"))));
}

/// Where no plan of this model fits, what is said to try.
std::string hint_for(const PlannerOptions& options, std::int64_t memory_bytes) {
  Cluster cluster = small_cluster(4);
  cluster.memory_bytes = memory_bytes;
  try {
    plan_quietly(small_model(), cluster, options);
  } catch (const Error& error) {
    return error.hint();
  }
  return "a plan fits";
}

/// The memory that the leanest plan under these options takes.
std::int64_t memory_of(PlannerOptions options) {
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  return plan.prediction.meshes[0_m].memory.total;
}

TEST(FeasibleOptions, SaysHowManyDevicesOrMicroBatchesWouldDo) {
  PlannerOptions options;
  options.method = "zero-3";
  options.micro_batches = 1;
  options.devices = 4;
  const std::int64_t on_four = memory_of(options);
  options.devices = 2;
  options.rematerialize = Rematerialize::never;
  ASSERT_GT(memory_of(options), on_four);
  EXPECT_THAT(hint_for(options, on_four), HasSubstr("--devices 4"));
  options.micro_batches = 2;
  const std::int64_t in_two = memory_of(options);
  options.micro_batches = 1;
  ASSERT_GT(memory_of(options), in_two);
  EXPECT_THAT(hint_for(options, in_two), HasSubstr("--micro-batches 2"));
}

TEST(FeasibleOptions, NamesSeveralChangesWhereNoneAloneWouldDo) {
  PlannerOptions options;
  options.method = "zero-3";
  options.devices = 4;
  options.micro_batches = 2;
  options.rematerialize = Rematerialize::always;
  const std::int64_t least = memory_of(options);
  options.devices = 2;
  options.micro_batches = 1;
  options.rematerialize = Rematerialize::never;
  EXPECT_THAT(hint_for(options, least), HasSubstr("--devices 4 --micro-batches 0 --rematerialize auto"));
}

TEST(FeasibleOptions, SpeaksOfRematerialisationOnlyWhereItIsOff) {
  PlannerOptions options;
  options.micro_batches = 2;
  EXPECT_THAT(hint_for(options, 30000), testing::Not(HasSubstr("--rematerialize")));
  options.rematerialize = Rematerialize::never;
  EXPECT_THAT(hint_for(options, 30000), HasSubstr("--rematerialize auto"));
}

}  // namespace
}  // namespace alpa
