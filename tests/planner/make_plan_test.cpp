#include "libalpa/planner/make_plan.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <cctype>
#include <set>
#include <sstream>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/search/baselines.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/schedule/schedule.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

Plan planned(const std::string& method, int devices, int micro_batches, int blocks = 2,
             PlannerOptions options = {}) {
  options.method = method;
  options.micro_batches = micro_batches;
  return plan_quietly(small_model(blocks), small_cluster(devices), options);
}

/// Of a step, over all runs: "all-reduce", "shift" ...
std::map<std::string, int> collectives(const Plan& plan) {
  std::map<std::string, int> counts;
  const Program program = lower(tiny_gpt(plan.micro_batch_samples), plan);
  for (const MeshProgram& mesh : program.meshes)
    for (const SegmentRun& run : mesh.schedule)
      for (const Instruction& instruction : mesh.segment_of(run).instructions) {
        if (std::holds_alternative<Shift>(instruction.body)) ++counts["shift"];
        const auto* convert = std::get_if<Convert>(&instruction.body);
        if (convert && convert->step.kind != ConversionKind::slice)
          ++counts[conversion_name(convert->step.kind)];
      }
  return counts;
}

/// The first ones of "every plan of 8, 16 micro-batches, cut into stages between 4 clusters".
std::vector<int> numbers_in(const std::string& bound_covers) {
  std::vector<int> numbers;
  std::istringstream words(bound_covers.substr(0, bound_covers.find(" micro-batches")));
  for (std::string word; words >> word;)
    if (std::isdigit(word.front())) numbers.push_back(std::stoi(word));
  return numbers;
}

class EveryMethod : public testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, MakesAPlanThatPassesItsOwnChecksAndTheVerifier) {
  const Plan plan = planned(GetParam(), GetParam() == "serial" ? 1 : 4, 2);
  EXPECT_GT(plan.prediction.step_s, 0);
  EXPECT_EQ(std::count_if(plan.prediction.candidates.begin(), plan.prediction.candidates.end(),
                          [](const Candidate& c) { return c.verdict == "chosen"; }),
            1);
}

std::vector<std::string> every_method() {
  std::vector<std::string> all = baseline_names();
  std::erase(all, "deepspeed-moe");  // which has no plan of a model without experts
  all.insert(all.end(), {"auto", "search"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn(every_method()), [](const auto& method) {
  std::string name = method.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Of the tiny GPT with two blocks. The table is used twice; its two gradients are added before they are
// reduced.
constexpr int kParameters = 2 + 2 * 16 + 2;

TEST(DataParallel, ReducesEachGradientOncePerStepWhateverTheMicroBatches) {
  for (const int micro_batches : {1, 2}) {
    EXPECT_THAT(collectives(planned("data-parallel", 4, micro_batches, 2, without_buckets())),
                testing::ElementsAre(testing::Pair("all-reduce", kParameters)));
    EXPECT_THAT(collectives(planned("data-parallel", 4, micro_batches)),
                testing::ElementsAre(testing::Pair("all-reduce", 1)));
  }
}

TEST(Zero1, ScattersGradientsOncePerStepAndGathersParameters) {
  EXPECT_THAT(collectives(planned("zero-1", 4, 2)),
              testing::ElementsAre(testing::Pair("all-gather", kParameters),
                                   testing::Pair("reduce-scatter", kParameters)));
}

TEST(EqualLayer, CutsEquallyManyLayersOntoEqualMeshes) {
  const Plan plan = planned("equal-layer", 4, 8);
  const std::size_t stages = plan.stages.size();
  for (const StageIndex s : plan.stages.indices()) {
    EXPECT_EQ(static_cast<std::size_t>(plan.stages[s].end_layer - plan.stages[s].first_layer), 4 / stages);
    EXPECT_EQ(plan.mesh_of(s).shape, plan.meshes[0_m].shape);
  }
  EXPECT_EQ(plan.devices(), 4);
  for (const Candidate& candidate : plan.prediction.candidates)
    EXPECT_THAT(candidate.method, testing::StartsWith("equal-layer "));
  EXPECT_THAT(plan.prediction.candidates.size(), testing::Gt(1u));
}

TEST(Baseline, OfExpertsNeedsSome) {
  EXPECT_THAT([] { planned("deepspeed-moe", 4, 1); },
              ThrowsMessage<Error>(HasSubstr("method 'deepspeed-moe' has no plan for this model")));
}

TEST(MicroBatches, AreWholeGroupsOfSamples) {
  PlanningModel model = small_model();
  model.graph = [](std::int64_t samples) {
    EXPECT_EQ(samples % 4, 0);
    return tiny_gpt(samples, 2);
  };
  model.group_samples = 4;
  PlannerOptions options;
  options.method = "inter-only";
  EXPECT_LE(plan_quietly(model, small_cluster(2), options).micro_batches, 2);
  options.micro_batches = 4;
  EXPECT_THAT([&] { plan_quietly(model, small_cluster(2), options); },
              ThrowsMessage<Error>(HasSubstr("4 micro-batches of whole groups of 4 samples")));
}

TEST(MicroBatches, AreNoneWhereABatchIsNoWholeNumberOfGroups) {
  for (const std::int64_t group : {3, 1000}) {
    PlanningModel model = small_model();
    model.group_samples = group;
    EXPECT_THAT(
        [&] { plan_quietly(model, small_cluster(2), {}); },
        ThrowsMessage<Error>(HasSubstr("is not a whole number of groups of " + std::to_string(group))));
  }
}

TEST(MicroBatches, AreAnyNumberThatDividesTheGroupsOfAStep) {
  PlanningModel model = small_model();
  model.batch = 76;  // 38 groups of two, as 1520 samples are of 40
  model.group_samples = 2;
  for (const int count : {19, 38}) {
    PlannerOptions options;
    options.method = "data-parallel";
    options.micro_batches = count;
    const Plan asked = plan_quietly(model, small_cluster(2), options);
    EXPECT_EQ(asked.micro_batches, count);
    EXPECT_EQ(asked.micro_batch_samples, 76 / count);
    PlannerOptions pinned;
    pinned.pin = parse_pin("micro_batches = " + std::to_string(count) +
                               "\n[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\n",
                           "pin");
    EXPECT_EQ(plan_quietly(model, small_cluster(2), pinned).micro_batches, count);
  }
}

// Whatever baselines are with so many: where little memory is, few of them fit.
TEST(MicroBatches, OnEitherSideOfTheFastestAreSearched) {
  PlanningModel model = small_model();
  model.batch = 64;
  Cluster cluster = small_cluster(4);
  cluster.f32_flops_per_s = 1e9;
  PlannerOptions options;
  options.effort = PlannerEffort::quick;
  for (const std::int64_t memory_bytes : {400'000, 1'000'000}) {
    cluster.memory_bytes = memory_bytes;
    const Plan plan = plan_quietly(model, cluster, options);
    const std::vector<int> searched = numbers_in(plan.prediction.bound_covers);
    const std::vector<int> counts = micro_batch_counts(model.batch, model.batch);
    const auto own = std::ranges::find(counts, plan.micro_batches);
    for (auto count = counts.begin(); count != counts.end(); ++count)
      if (std::abs(count - own) == 1) {
        EXPECT_THAT(searched, testing::Contains(*count)) << memory_bytes;
      }
  }
}

// By itself the search minimises an estimate, from which the simulator differs by a few per cent where a step
// is but tens of messages.
TEST(Search, BeatsOrEqualsEveryBaselineAsACandidateAndNearlyByItself) {
  const double best = planned("auto", 4, 0).prediction.step_s,
               own = planned("search", 4, 0).prediction.step_s;
  EXPECT_LE(best, own);
  for (const std::string& method : baseline_names()) {
    if (method == "serial" || method == "deepspeed-moe") continue;  // of one device; of experts
    const double step_s = planned(method, 4, 0).prediction.step_s;
    EXPECT_LE(best, step_s) << method;
    EXPECT_LE(own, 1.05 * step_s) << method;
  }
}

std::vector<Candidate> of_own_stages(const Plan& plan) {
  std::vector<Candidate> own = plan.prediction.candidates;
  std::erase_if(own, [](const Candidate& candidate) { return candidate.schedule.empty(); });
  return own;
}

// A device for each of four layers leaves nothing else to choose.
TEST(Schedule, IsTheFastestThatThereIs) {
  for (const int micro_batches : {1, 2, 8}) {
    const Plan plan = planned("inter-only", 4, micro_batches);
    double fastest_s = infinity;
    for (const std::string& schedule : schedule_names(1)) {
      PlannerOptions options;
      options.method = "inter-only";
      options.micro_batches = micro_batches;
      options.schedule = schedule;
      const Plan named = plan_quietly(small_model(), small_cluster(4), options);
      EXPECT_EQ(named.schedule, schedule);
      EXPECT_TRUE(of_own_stages(named).empty());
      fastest_s = std::min(fastest_s, named.prediction.step_s);
    }
    EXPECT_NEAR(plan.prediction.step_s, fastest_s, 1e-9 * fastest_s)
        << micro_batches;  // sums in another order
  }
}

TEST(Schedule, StandsBesideWhatTheSameStagesTakeUnderOthers) {
  const Plan plan = planned("inter-only", 4, 8);
  std::vector<std::string> tried;
  for (const Candidate& candidate : of_own_stages(plan)) {
    tried.push_back(candidate.schedule);
    EXPECT_GE(candidate.step_s, plan.prediction.step_s) << candidate.schedule;
    EXPECT_EQ(candidate.is_chosen(), candidate.schedule == plan.schedule) << candidate.schedule;
    EXPECT_THAT(candidate.method, testing::EndsWith("4 stages, 8 micro-batches, " + candidate.schedule));
  }
  EXPECT_THAT(tried, testing::UnorderedElementsAreArray(schedule_names(1)));
}

TEST(Schedule, OfOneStageIsNoChoice) {
  const Plan plan = planned("zero-2", 4, 2);
  EXPECT_EQ(plan.schedule, "1f1b");
  EXPECT_TRUE(of_own_stages(plan).empty());
}

TEST(Schedule, OfAPinThatLeavesItOutIsThatOfTheOptions) {
  PlannerOptions options;
  std::string text = "micro_batches = 8\n";
  for (int stage = 0; stage < 4; ++stage) text += "[[stage]]\nlayers = 1\nmesh = []\n";
  options.pin = parse_pin(text, "pin.toml");
  EXPECT_EQ(plan_quietly(small_model(), small_cluster(4), options).schedule,
            planned("inter-only", 4, 8).schedule);
  options.schedule = "gpipe";
  EXPECT_EQ(plan_quietly(small_model(), small_cluster(4), options).schedule, "gpipe");
}

TEST(Bound, SaysWhichSchedulesItHoldsFor) {
  EXPECT_THAT(planned("search", 4, 8).prediction.bound_covers, HasSubstr(", under any schedule"));
  PlannerOptions options;
  options.schedule = "gpipe";
  EXPECT_THAT(plan_quietly(small_model(), small_cluster(4), options).prediction.bound_covers,
              HasSubstr(", under schedule gpipe"));
}

TEST(Search, IsDeterministic) { EXPECT_EQ(planned("auto", 4, 2), planned("auto", 4, 2)); }

TEST(Search, ListsACandidateThatTwoMethodsFindOnce) {
  const Plan plan = planned("auto", 2, 2);
  std::vector<std::string> names;
  for (const Candidate& candidate : plan.prediction.candidates) names.push_back(candidate.method);
  EXPECT_THAT(names, testing::Contains(HasSubstr(" = search")));
}

TEST(Search, SaysWhyACandidateLost) {
  const Plan plan = planned("auto", 4, 2);
  for (const Candidate& candidate : plan.prediction.candidates) {
    if (candidate.step_s <= plan.prediction.step_s) continue;
    EXPECT_THAT(candidate.verdict, testing::MatchesRegex("slower: [a-z]+ \\+.*|for comparison: .*"))
        << candidate.method;
  }
}

TEST(Search, CarriesABoundOnItsStep) {
  const Prediction prediction = planned("auto", 4, 2).prediction;
  EXPECT_GT(prediction.lower_bound_s, 0);
  EXPECT_LE(prediction.lower_bound_s, prediction.step_s);
  EXPECT_FALSE(prediction.hit_time_limit);
}

// What can be split in two only: on an axis more it is split by twice as many devices.
TEST(Search, LooksAtMeshesOfAsManyAxesAsItIsToldTo) {
  const PlanningModel model{"narrow and wide", "", 2,
                            [](std::int64_t samples) { return narrow_and_wide(samples, 2); }};
  Cluster cluster = small_cluster(8);
  cluster.f32_flops_per_s = 1e6;
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = 1;
  double before_s = infinity;
  for (const auto& [axes, text] :
       {std::pair{1, "one axis"}, {2, "up to two axes"}, {3, "up to three axes"}}) {
    options.mesh_axes = axes;
    const Plan plan = plan_quietly(model, cluster, options);
    EXPECT_THAT(plan.prediction.bound_covers, HasSubstr(fmt::format(", on submeshes of {}, ", text)));
    EXPECT_LE(plan.prediction.step_s, before_s);
    for (const DeviceMesh& mesh : plan.meshes) EXPECT_LE(std::ssize(mesh.shape), axes);
    before_s = plan.prediction.step_s;
  }
  options.mesh_axes = 0;
  options.effort = PlannerEffort::thorough;
  EXPECT_EQ(plan_quietly(model, cluster, options).prediction.step_s, before_s);
}

TEST(Search, NamesNoBoundAboveABaselineThatIsBetterThanAllItSearched) {
  PlannerOptions options;
  options.micro_batches = 8;
  options.layers = 2;  // which leaves no four stages to the search
  Cluster cluster = small_cluster(4);
  cluster.within_node = {2e-5, 1e10};  // so that collectives are dear
  const Plan plan = plan_quietly(small_model(4), cluster, options);
  EXPECT_EQ(plan.stages.size(), 4u);
  EXPECT_GT(plan.prediction.lower_bound_s, 0);
  EXPECT_LE(plan.prediction.lower_bound_s, plan.prediction.estimate_s);
}

TEST(Baseline, IsFoundHoweverMuchLongerItTakesThanItsLeastBound) {
  PlannerOptions options;
  options.method = "tensor";
  options.micro_batches = 2;
  Cluster cluster = small_cluster(4);
  cluster.within_node = {0.1, 1e5};
  const Prediction prediction = plan_quietly(small_model(2), cluster, options).prediction;
  EXPECT_GT(prediction.step_s, 100 * prediction.meshes.front().compute_s);
}

TEST(Baseline, ThatIsShortOfMemoryIsNotTriedWithLargerMicroBatches) {
  PlannerOptions options;
  options.effort = PlannerEffort::quick;
  const PlanningModel model = small_model(2);
  Cluster cluster = small_cluster(4);
  const Plan roomy = planned("data-parallel", 4, 2);
  cluster.memory_bytes = roomy.prediction.meshes.front().memory.total / 2;
  const Plan tight = plan_quietly(model, cluster, options);
  std::set<std::string> of_one_try;
  bool are_left = false;
  for (const Candidate& candidate : tight.prediction.candidates) {
    are_left = are_left || candidate.verdict == "do not fit with smaller micro-batches either";
    const bool is_short = candidate.step_s == 0 && candidate.memory_bytes > 0;
    if (!is_short || candidate.method.find(' ') != std::string::npos) continue;
    EXPECT_TRUE(of_one_try.insert(candidate.method).second) << candidate.method;
  }
  EXPECT_TRUE(are_left);
  ASSERT_FALSE(of_one_try.empty());
  // None of them would have been a plan.
  for (const std::string& method : of_one_try) {
    options.method = method;
    options.micro_batches = 1;
    EXPECT_THROW(plan_quietly(model, cluster, options), Error) << method;
  }
}

TEST(Baseline, CarriesABoundForItsStages) {
  const Prediction prediction = planned("inter-only", 4, 4).prediction;
  ASSERT_EQ(prediction.meshes.size(), 4u);
  EXPECT_GT(prediction.lower_bound_s, 0);
  EXPECT_LE(prediction.lower_bound_s, prediction.step_s);
}

TEST(Search, CutsBetweenClustersOfLayersAlone) {
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = 2;
  options.layers = 2;
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  for (const Candidate& candidate : plan.prediction.candidates)
    EXPECT_THAT(candidate.method, testing::AnyOf(HasSubstr("1 stage,"), HasSubstr("2 stages,")));
  options.layers = 5;
  EXPECT_THAT([&] { plan_quietly(small_model(), small_cluster(4), options); },
              ThrowsMessage<Error>(HasSubstr("the model has 4 layers")));
}

TEST(Search, UsesAllDevicesEvenWhereOneWouldBeFaster) {
  Cluster cluster = small_cluster(4);
  cluster.within_node = {1, 1};  // a second per message
  PlannerOptions options;
  options.micro_batches = 2;
  const Plan plan = plan_quietly(small_model(), cluster, options);
  EXPECT_EQ(plan.devices(), 4);
}

}  // namespace
}  // namespace alpa
