#include "libalpa/planner/search/pin.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/plan/explain.h"
#include "libalpa/plan/placement.h"
#include "libalpa/planner/make_plan.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
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
                  "'stages_per_mesh = 2' with 3 stages, which is not a multiple of it"},
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
              ThrowsMessage<Error>(HasSubstr("schedule 'v-half' with 1 stage on each mesh")));
  EXPECT_THAT([&] { check("stages_per_mesh = 2\nschedule = \"gpipe\"\n" + stages); },
              ThrowsMessage<Error>(HasSubstr("schedule 'gpipe' with 2 stages on each mesh")));
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
  EXPECT_THAT([&] { stage_of(stage + selective); },
              ThrowsMessage<Error>(HasSubstr("pin.toml:4:18: 'recompute_form' without 'recomputed_layers'")));
}

TEST(Pin, SaysOverlapAndTransfersInTheWordsOfTheOptions) {
  const std::string stage = "[[stage]]\nlayers = 4\n";
  for (const auto& word : overlap_choices())
    EXPECT_EQ(parse_pin(fmt::format("overlap = \"{}\"\n", word.name) + stage, "pin.toml").overlap,
              word.value);
  for (const auto& word : transfer_choices()) {
    const std::string line = fmt::format("transfers = \"{}\"\n", word.name);
    EXPECT_EQ(parse_pin(line + stage, "pin.toml").transfers, word.value);
    EXPECT_EQ(parse_pin(stage + line, "pin.toml").stage_transfers, std::vector{word.value});
  }
  for (const auto& [text, fault] :
       {std::pair{"overlap = \"al\"\n" + stage,
                  "pin.toml:1:11: 'overlap': expected one of 'auto', 'none', "
                  "'transfers', 'all', got 'al'; did you mean 'all'?"},
        {"updates = \"before\"\n" + stage,
         "pin.toml:1:11: 'updates': expected one of 'auto', 'after-norm', 'before-norm', 'next-forward', got "
         "'before'"},
        {"transfers = \"broadcst\"\n" + stage, "pin.toml:1:13: 'transfers': expected one of 'auto', "},
        {stage + "transfers = \"broadcst\"\n", "got 'broadcst'; did you mean 'broadcast'?"},
        {stage + "transfer = \"auto\"\n", "unknown key 'transfer' in 'stage[0]'; did you mean 'transfers'?"},
        {stage + "overlap = \"all\"\n", "unknown key 'overlap' in 'stage[0]'"}})
    EXPECT_THAT(([&, text = text] { parse_pin(text, "pin.toml"); }), ThrowsMessage<Error>(HasSubstr(fault)))
        << text;
}

/// Two stages of two devices; `first` and `second` are further lines of each.
Lowered two_stages_with(const std::string& said, const std::string& first = "",
                        const std::string& second = "", const PlannerOptions& options = {}) {
  const std::string data = "[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"data\"]\n",
                    tensor = "[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"tensor\"]\n";
  return pinned("micro_batches = 4\nschedule = \"1f1b\"\n" + said + data + first + tensor + second,
                small_cluster(4), options);
}

/// The strategies of all that a stage sends, each once.
std::set<std::string> sent_by(const Lowered& lowered, StageIndex stage) {
  const GraphUses uses(lowered.graph);
  const Placement placement(lowered.plan, uses);
  std::set<std::string> strategies;
  for (const PlannedTransfer& transfer : lowered.plan.transfers)
    if (placement.stage_of_value(transfer.value) == stage)
      strategies.insert(transfer_strategy_name(transfer.way.strategy));
  return strategies;
}

TEST(Pin, HasTheOverlapThatItSays) {
  for (const Word<Overlap>& word : overlap_words())
    EXPECT_EQ(two_stages_with(fmt::format("overlap = \"{}\"\n", word.name)).plan.overlap, word.value);
  PlannerOptions options;
  options.overlap = kFastestOverlap;
  EXPECT_EQ(two_stages_with("overlap = \"auto\"\n").plan, two_stages_with("", "", "", options).plan);
}

TEST(Pin, UpdatesWhenItSays) {
  for (const Word<UpdateOrder>& word : update_order_words())
    EXPECT_EQ(two_stages_with(fmt::format("updates = \"{}\"\n", word.name)).plan.updates,
              word.value == UpdateOrder::next_forward ? UpdateOrder::after_norm : word.value)
        << "stages that share weights have none in the next forward";
  PlannerOptions options;
  options.updates = kFastestUpdates;
  EXPECT_EQ(two_stages_with("updates = \"auto\"\n").plan, two_stages_with("", "", "", options).plan);
  options.updates = "before-norm";
  EXPECT_EQ(two_stages_with("", "", "", options).plan.updates, UpdateOrder::before_norm);
}

TEST(Pin, AddsSumsOfGradientsUpInTheOrderThatItSays) {
  const auto has_turns = [](const std::string& order) {
    return std::ranges::any_of(two_stages_with(fmt::format("sync_order = \"{}\"\n", order)).plan.sync,
                               [](const GradientSync& sync) { return sync.turn > 0; });
  };
  EXPECT_TRUE(has_turns("first-use"));
  EXPECT_FALSE(has_turns("ready"));
}

TEST(Pin, AddsSumsOfGradientsUpInTheBucketsThatItSays) {
  for (const Word<BucketSizes>& word : bucket_words()) {
    PlannerOptions options;
    options.sync = word.name;
    const Plan said = two_stages_with(fmt::format("sync = \"{}\"\n", word.name)).plan;
    EXPECT_EQ(said, two_stages_with("", "", "", options).plan);
    EXPECT_EQ(said.sync.empty(), word.name == "each");
  }
}

TEST(Pin, ThatLeavesOverlapAndTransfersOutHasThoseOfTheOptions) {
  EXPECT_EQ(two_stages_with("").plan.overlap, Overlap::none);
  PlannerOptions options;
  options.overlap = "transfers";
  options.transfers = "global-all-gather";
  const Lowered lowered = two_stages_with("", "transfers = \"broadcast\"\n", "", options);
  EXPECT_EQ(lowered.plan.overlap, Overlap::transfers);
  EXPECT_THAT(sent_by(lowered, 0_s), ElementsAre("broadcast"));
  EXPECT_THAT(sent_by(lowered, 1_s), ElementsAre("global-all-gather"));
}

TEST(Pin, SendsInTheWayThatItSays) {
  for (const Word<TransferStrategy>& word : transfer_strategy_words()) {
    const Lowered lowered = two_stages_with(fmt::format("transfers = \"{}\"\n", word.name));
    for (const StageIndex s : lowered.plan.stages.indices())
      EXPECT_THAT(sent_by(lowered, s), ElementsAre(word.name)) << s;
  }
}

TEST(Pin, SendsFromAStageInTheWayThatTheStageSays) {
  const Lowered one = two_stages_with("transfers = \"send-receive\"\n", "", "transfers = \"broadcast\"\n"),
                each =
                    two_stages_with("", "transfers = \"local-all-gather\"\n", "transfers = \"broadcast\"\n");
  EXPECT_THAT(sent_by(one, 0_s), ElementsAre("send-receive"));
  EXPECT_THAT(sent_by(one, 1_s), ElementsAre("broadcast"));
  EXPECT_THAT(sent_by(each, 0_s), ElementsAre("local-all-gather"));
  EXPECT_THAT(sent_by(each, 1_s), ElementsAre("broadcast"));
  EXPECT_EQ(
      two_stages_with("transfers = \"broadcast\"\n", "transfers = \"auto\"\n", "transfers = \"auto\"\n").plan,
      two_stages_with("").plan);
}

TEST(Pin, IsExplainedWithItsOverlapAndTransfers) {
  const Lowered lowered = two_stages_with("overlap = \"all\"\n", "transfers = \"local-all-gather\"\n",
                                          "transfers = \"send-receive\"\n");
  const PlanFacts facts = plan_facts(lowered.plan, lowered.graph);
  EXPECT_THAT(plan_heading(facts), HasSubstr("schedule 1f1b, overlap all, by pin pin\n"));
  EXPECT_THAT(plan_details(facts), AllOf(ContainsRegex("from stage 0, [^\n]*, local-all-gather: "),
                                         ContainsRegex("from stage 1, [^\n]*, send-receive: ")));
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

TEST(Pin, IsComparedUnderItsOverlapButNotWithItsTransfers) {
  PlannerOptions quick;
  quick.effort = PlannerEffort::quick;
  const auto own_s = [](const std::string& said, const PlannerOptions& options) {
    const std::string stages = "[[stage]]\nlayers = 2\nmesh = []\n[[stage]]\nlayers = 2\nmesh = []\n";
    const Plan plan = pinned_beside_the_search(said + stages, small_cluster(2), options);
    return with_verdict(plan, "the search's own best")->step_s;
  };
  PlannerOptions overlapped = quick;
  overlapped.overlap = "all";
  const double own_overlapped_s = own_s("overlap = \"all\"\n", quick), plain_s = own_s("", quick);
  EXPECT_LT(own_overlapped_s, plain_s);
  EXPECT_EQ(own_overlapped_s, own_s("", overlapped));
  EXPECT_EQ(plain_s, own_s("transfers = \"global-all-gather\"\n", quick));
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
      const std::string said =
          "micro_batches = 4\nschedule = \"1f1b\"\noverlap = \"none\"\ntransfers = \"auto\"\n";
      pinned_beside_the_search(said + "[[stage]]\nlayers = 4\nmesh = [2]\n", small_cluster(4), options);
    };
  };
  EXPECT_THAT(message([](PlannerOptions& o) { o.method = "serial"; }),
              ThrowsMessage<Error>(
                  HasSubstr("--method serial together with --pin: a pinned plan is not looked for")));
  EXPECT_THAT(
      message([](PlannerOptions& o) { o.micro_batches = 8; }),
      ThrowsMessage<Error>(HasSubstr("--micro-batches 8 together with --pin: the pinned plan has 4")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.schedule = "gpipe"; }),
              ThrowsMessage<Error>(
                  HasSubstr("--schedule gpipe together with --pin: the pinned plan has schedule '1f1b'")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.overlap = "all"; }),
              ThrowsMessage<Error>(
                  HasSubstr("--overlap all together with --pin: the pinned plan has overlap 'none'")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.transfers = "broadcast"; }),
              ThrowsMessage<Error>(HasSubstr(
                  "--transfers broadcast together with --pin: the pinned plan has transfers 'auto'")));
  EXPECT_THAT(message([](PlannerOptions& o) { o.devices = 4; }),
              ThrowsMessage<Error>(HasSubstr("--devices 4 together with --pin: the pinned plan takes 2")));
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
