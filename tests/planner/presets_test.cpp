#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/planner_options.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

PlannerOptions preset(const std::string& name) {
  PlannerOptions options;
  options.preset = name;
  return options;
}

TEST(Presets, SetTheOptionsThatTheyAreOf) {
  const PlannerOptions options = with_preset(preset("bytescheduler"));
  EXPECT_EQ(options.method, "data-parallel");
  EXPECT_EQ(options.overlap, "all");
  EXPECT_EQ(options.sync, "each");
  EXPECT_EQ(options.sync_order, "first-use");
  EXPECT_EQ(options.updates, "next-forward");
}

TEST(Presets, LeaveOtherOptionsAsTheyAre) {
  PlannerOptions options = preset("zero-1");
  options.micro_batches = 4;
  options.updates = "next-forward";
  options = with_preset(options);
  EXPECT_EQ(options.micro_batches, 4);
  EXPECT_EQ(options.updates, "next-forward");
  EXPECT_EQ(options.sync, PlannerOptions().sync);
}

TEST(Presets, AreEachAPlanOfTheirOptions) {
  for (const Word<std::string>& word : preset_choices()) {
    if (word.value.empty()) continue;
    PlannerOptions options = preset(word.value);
    Cluster cluster = small_cluster(4);
    if (word.value == "byteps") {
      cluster = small_cluster(1);
      cluster.nodes = 4;
      options.servers = cluster.servers = 2;
    }
    options = with_preset(options);
    const Plan plan = plan_quietly(small_model(), cluster, options);
    EXPECT_EQ(plan.cluster.servers, options.servers) << word.value;
    EXPECT_EQ(plan.method, options.method) << word.value;
    EXPECT_EQ(plan.overlap, Overlap::all) << word.value;
    EXPECT_EQ(update_order_name(plan.updates), options.updates) << word.value;
  }
}

TEST(Presets, RefuseOptionsThatSayOtherwise) {
  PlannerOptions options = preset("horovod");
  options.sync = "ddp";
  EXPECT_THAT(
      [&] { with_preset(options); },
      ThrowsMessage<Error>(AllOf(HasSubstr("--sync ddp together with --preset horovod, which has horovod"))));
  options = preset("ddp");
  options.pin = parse_pin("[[stage]]\nlayers = 4\nmesh = [1]\naxes = []\n", "pin");
  EXPECT_THAT([&] { with_preset(options); },
              ThrowsMessage<Error>(HasSubstr("--preset ddp together with --pin")));
  EXPECT_THAT([&] { with_preset(preset("byteps")); },
              ThrowsMessage<Error>(HasSubstr("--preset byteps without --servers")));
}

}  // namespace
}  // namespace alpa
