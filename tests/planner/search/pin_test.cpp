#include "libalpa/planner/search/pin.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Pin, IsCalledByTheNameOfItsFileWhereverItLies) {
  const std::string pin = "[[stage]]\nlayers = 4\nmesh = [2]\n";
  EXPECT_EQ(parse_pin(pin, "/here/pin.toml").method, "pin pin.toml");
  EXPECT_EQ(parse_pin(pin, "pin.toml").method, "pin pin.toml");
}

TEST(Pin, SaysStateShardingWhichSpreadIsRefusedFor) {
  const std::string stage = "[[stage]]\nlayers = 4\nmesh = [2]\n";
  EXPECT_EQ(parse_pin(stage + "state_sharding = \"gradients\"\n", "pin.toml").stages[0].state_sharding,
            StateSharding::gradients);
  EXPECT_THAT([&] { parse_pin(stage + "spread = \"gradients\"\n", "pin.toml"); },
              ThrowsMessage<Error>(HasSubstr("pin.toml:4:10: 'spread' is called 'state_sharding'")));
}

TEST(Pin, SaysHowManyStagesShareAMesh) {
  const std::string two = "stages_per_mesh = 2\nschedule = \"interleaved\"\n",
                    stage = "[[stage]]\nlayers = 1\nmesh = [2]\n";
  const PinnedPlan pin = parse_pin(two + stage + stage + stage + stage, "pin.toml");
  EXPECT_EQ(pin.stages_per_mesh, 2);
  EXPECT_EQ(device_count(pin), 4);
  for (const auto& [text, fault] :
       {std::pair{two + stage + stage + stage,
                  "'stages_per_mesh = 2' beside 3 stages, which is no multiple of it"},
        {two + stage + "[[stage]]\nlayers = 1\nmesh = [4]\n",
         "stages that share meshes all have the same 'mesh'"},
        {"stages_per_mesh = 0\n" + stage, "expected an integer, from 1 to 64"}})
    EXPECT_THAT(([&, text = text] { parse_pin(text, "pin.toml"); }), ThrowsMessage<Error>(HasSubstr(fault)));
}

TEST(Pin, OfAScheduleThatDoesNotTakeSoManyStagesOnAMeshIsRefused) {
  const std::string stage = "[[stage]]\nlayers = 1\nmesh = [2]\n", stages = stage + stage + stage + stage;
  const auto check = [](const std::string& text) { check_pin(parse_pin(text, "pin.toml"), tiny_gpt(8), 8); };
  EXPECT_NO_THROW(check("stages_per_mesh = 2\nschedule = \"v-half\"\n" + stages));
  EXPECT_NO_THROW(check("stages_per_mesh = 2\n" + stages));
  EXPECT_THAT([&] { check("schedule = \"v-half\"\n" + stages); },
              ThrowsMessage<Error>(HasSubstr("schedule 'v-half' beside 1 stage on each mesh")));
  EXPECT_THAT([&] { check("stages_per_mesh = 2\nschedule = \"gpipe\"\n" + stages); },
              ThrowsMessage<Error>(HasSubstr("schedule 'gpipe' beside 2 stages on each mesh")));
  EXPECT_THAT([&] { check("stages_per_mesh = 4\nschedule = \"v-min\"\n" + stages); },
              ThrowsMessage<Error>(HasSubstr("interleaved")));
}

TEST(Pin, SaysHowItsLayersAreRecomputed) {
  const std::string stage = "[[stage]]\nlayers = 4\nmesh = [2]\n",
                    selective = "recompute_form = \"selective\"\n";
  const auto stage_of = [](const std::string& text) { return parse_pin(text, "pin.toml").stages[0]; };
  EXPECT_EQ(stage_of(stage + "recomputed_layers = 2\n").recompute_form, RecomputeForm::full);
  EXPECT_EQ(stage_of(stage + "recomputed_layers = 2\n" + selective).recompute_form, RecomputeForm::selective);
  EXPECT_EQ(stage_of(stage + "rematerialize = true\n" + selective).recomputed_layers, 4);
  EXPECT_THAT(
      [&] { stage_of(stage + selective); },
      ThrowsMessage<Error>(HasSubstr("pin.toml:4:18: 'recompute_form' beside no 'recomputed_layers'")));
}

TEST(Pin, OfMoreDevicesAxesOrLayersThanThereCanBeIsRefusedByPlace) {
  const std::string stage = "[[stage]]\nlayers = 4\n";
  for (const auto& [text, fault] :
       {std::pair{stage + "mesh = [65536, 65536]\n", "pin.toml:3:8: 'mesh' has more than 262144 devices"},
        {stage + "mesh = [262144]\n" + stage + "mesh = [2]\n",
         "pin.toml:6:8: the stages up to here have more than 262144 devices"},
        {stage + "[[stage]]\nlayers = 100000\n",
         "pin.toml:4:10: the stages up to here have more than 100000 layers"},
        {stage + "mesh = [2, 1, 2, 2, 2]\n",
         "pin.toml:3:8: 'mesh' has 4 axes of two devices or more, expected at most 3"},
        {stage + "mesh = [1048576]\n", "'stage[0].mesh[0]': expected an integer, from 1 to 262144"}})
    EXPECT_THAT(([&, text = text] { parse_pin(text, "pin.toml"); }), ThrowsMessage<Error>(HasSubstr(fault)))
        << text;
}

double step_of_search(int devices, int micro_batches = 0) {
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = micro_batches;
  return plan_quietly(small_model(), small_cluster(devices), options).prediction.step_s;
}

/// The tiny GPT on four devices of a pinned plan, with the search beside it.
Plan pinned_beside_the_search(const std::string& pin, Cluster cluster = small_cluster(4),
                              PlannerOptions options = {}) {
  options.pin = parse_pin(pin, "pin.toml");
  options.compare_with_search = true;
  return plan_quietly(small_model(), cluster, options);
}

const Candidate* with_verdict(const Plan& plan, const std::string& words) {
  for (const Candidate& candidate : plan.prediction.candidates)
    if (candidate.verdict.find(words) != std::string::npos) return &candidate;
  return nullptr;
}

TEST(Pin, StandsBesideTheSearchsOwnBest) {
  const Plan plan = pinned_beside_the_search(
      "[[stage]]\nlayers = 1\nmesh = []\n[[stage]]\nlayers = 3\nmesh = []\n", small_cluster(2));
  EXPECT_EQ(plan.stages.size(), 2u);
  ASSERT_TRUE(with_verdict(plan, "chosen"));
  EXPECT_THAT(with_verdict(plan, "chosen")->method, HasSubstr("pin pin.toml"));
  const Candidate* own = with_verdict(plan, "the search's own best");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->step_s, step_of_search(2));
  EXPECT_THAT(own->verdict, HasSubstr(fmt::format("{:.3f} x", own->step_s / plan.prediction.step_s)));
}

TEST(Pin, IsComparedOnAsManyDevicesAsItTakes) {
  const Plan plan = pinned_beside_the_search("[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"tensor\"]\n");
  const Candidate* own = with_verdict(plan, "the search's own best");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->step_s, step_of_search(2));
}

TEST(Pin, ThatIsWhatTheSearchFindsIsToldOnce) {
  const Plan plan = pinned_beside_the_search("[[stage]]\nlayers = 4\nmesh = []\n");
  ASSERT_TRUE(with_verdict(plan, "chosen; the search's own best too"));
  EXPECT_THAT(with_verdict(plan, "chosen")->method, HasSubstr("pin pin.toml = search"));
}

TEST(Pin, IsRefusedBesideWhatItSaysItself) {
  const auto message = [](const std::function<void(PlannerOptions&)>& say) {
    PlannerOptions options;
    say(options);
    return [options] {
      const std::string said = "micro_batches = 4\nschedule = \"1f1b\"\n";
      pinned_beside_the_search(said + "[[stage]]\nlayers = 4\nmesh = [2]\n", small_cluster(4), options);
    };
  };
  EXPECT_THAT(
      message([](PlannerOptions& o) { o.method = "serial"; }),
      ThrowsMessage<Error>(HasSubstr("--method serial beside --pin: a pinned plan is not looked for")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.micro_batches = 8; }),
              ThrowsMessage<Error>(HasSubstr("--micro-batches 8 beside --pin: the pinned plan has 4")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.schedule = "gpipe"; }),
              ThrowsMessage<Error>(HasSubstr("--schedule gpipe beside --pin: the pinned plan has 1f1b")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.devices = 4; }),
              ThrowsMessage<Error>(HasSubstr("--devices 4 beside --pin: the pinned plan takes 2")));
  EXPECT_NO_THROW(message([](PlannerOptions& o) { o.devices = 2; })());
}

TEST(Pin, ThatDoesNotFitIsRefusedBeforeAnySearch) {
  Cluster cluster = small_cluster(4);
  cluster.memory_bytes = 20000;
  EXPECT_THAT([&] { pinned_beside_the_search("[[stage]]\nlayers = 4\nmesh = []\n", cluster); },
              ThrowsMessage<Error>(HasSubstr("no plan fits: the stage of layers 0 to 3")));
}

TEST(Method, StandsBesideTheSearchsOwnBest) {
  PlannerOptions options;
  options.method = "zero-3";
  options.compare_with_search = true;
  options.micro_batches = 2;
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  EXPECT_EQ(plan.method, "zero-3");
  ASSERT_TRUE(with_verdict(plan, "the search's own best"));
  EXPECT_EQ(with_verdict(plan, "the search's own best")->step_s, step_of_search(4, 2));
}

}  // namespace
}  // namespace alpa
