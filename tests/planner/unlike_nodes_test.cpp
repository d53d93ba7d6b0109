// Plans for clusters whose nodes differ.
#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/explain.h"
#include "libalpa/plan/facts/plan_facts.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/planner/search/baselines.h"
#include "libalpa/planner/search/even_stages.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/program/order/simulate.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/every_plan.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr int kMicroBatches = 4;

/// A node of two devices, three times as fast as the other part but for what goes between nodes.
Cluster fast_node() {
  Cluster part = small_cluster(2);
  part.name = "fast";
  part.device = "CPU, fast";
  part.memory_bytes_per_s *= 3;
  part.f32_flops_per_s *= 3;
  part.launch_s /= 3;
  part.within_node = {part.within_node.latency_s / 3, part.within_node.bytes_per_s * 3};
  return part;
}

Cluster slow_node() {
  Cluster part = small_cluster(2);
  part.name = "slow";
  part.device = "CPU, slow";
  part.between_nodes = {4e-5, 5e8};
  return part;
}

Cluster mixed() { return cluster_of_parts("mixed", {slow_node(), fast_node()}); }

/// Stages of so many of the tiny GPT's layers, on meshes of two devices.
PlannerOptions stages_of_two(const std::vector<int>& layers, const std::string& axes) {
  std::string pin = "micro_batches = " + std::to_string(kMicroBatches) + "\n";
  for (const int count : layers)
    pin += "[[stage]]\nlayers = " + std::to_string(count) + "\nmesh = [2]\naxes = [\"" + axes + "\"]\n";
  PlannerOptions options;
  options.pin = parse_pin(pin, "pin");
  return options;
}

struct Priced {
  Plan plan;
  Graph graph = tiny_gpt(8 / kMicroBatches);
  Program program;

  Priced(const Cluster& cluster, const PlannerOptions& options)
      : plan(plan_quietly(small_model(), cluster, options)), program(lower(graph, plan)) {}
  std::vector<double> seconds(MeshIndex mesh, const CostModel& costs) const {
    std::vector<double> all;
    for (const Segment& segment : program.meshes[mesh].segments)
      for (const double s : instruction_seconds(program, program.meshes[mesh], segment, costs))
        all.push_back(s);
    return all;
  }
};

/// All but what comes from other meshes, and the sum over all devices.
bool is_own(const Instruction& instruction) {
  return !std::holds_alternative<Receive>(instruction.body) &&
         !std::holds_alternative<GlobalSum>(instruction.body);
}

TEST(PlanOnUnlikeNodes, HasEachStageAtThePaceOfItsOwnNodes) {
  const Priced priced(mixed(), stages_of_two({2, 2}, "tensor"));
  const CostModel both(mixed()), slow(slow_node()), fast(fast_node());
  for (const auto& [mesh, alone] : {std::pair{0_m, &slow}, {1_m, &fast}}) {
    const std::vector<double> seconds = priced.seconds(mesh, both), expected = priced.seconds(mesh, *alone);
    std::size_t i = 0;
    int own = 0;
    for (const Segment& segment : priced.program.meshes[mesh].segments)
      for (const Instruction& instruction : segment.instructions) {
        if (is_own(instruction)) {
          EXPECT_EQ(seconds[i], expected[i]) << mesh;
          ++own;
        }
        ++i;
      }
    EXPECT_GT(own, 20);
  }
}

TEST(PlanOnUnlikeNodes, HasAStageAcrossThemAtThePaceOfTheSlower) {
  PlannerOptions options;
  options.pin = parse_pin(R"(
micro_batches = 4
[[stage]]
layers = 4
mesh = [2, 2]
axes = ["data", "tensor"]
)",
                          "pin");
  Cluster equal = slow_node();
  equal.nodes = 2;
  const Priced on_mixed(mixed(), options), on_equal(equal, options);
  EXPECT_EQ(on_mixed.plan.prediction.step_s, on_equal.plan.prediction.step_s);
  EXPECT_EQ(on_mixed.plan.program_fingerprint, on_equal.plan.program_fingerprint);
}

TEST(PlanOnUnlikeNodes, TakesLongerThanOnTwoOfTheFasterAndLessThanOnTwoOfTheSlower) {
  const auto step_s = [](const Cluster& cluster) {
    return plan_quietly(small_model(), cluster, stages_of_two({2, 2}, "tensor")).prediction.step_s;
  };
  Cluster two_slow = slow_node(), two_fast = fast_node();
  two_slow.nodes = two_fast.nodes = 2;
  EXPECT_GT(step_s(mixed()), step_s(two_fast));
  EXPECT_LT(step_s(mixed()), step_s(two_slow));
}

TEST(Baselines, CutLayersByThePaceOfTheNodes) {
  const Graph graph = narrow_and_wide(8, 8);
  std::vector<double> work(graph.layers.size());
  for (const Node& node : graph.nodes)
    if (node.phase != Phase::update)
      work[node.layer] += flops_of(*node.op, {operand_types(graph, node), node.attributes});
  Cluster equal = slow_node();
  equal.nodes = 2;
  for (const auto& [cluster, pace] : {std::pair{mixed(), 3}, {equal, 1}})
    for (const PinnedPlan& plan : Baselines(graph, 4, cluster, 1, {}).of("megatron")) {
      if (plan.stages.size() != 2) continue;
      const auto cut = work.begin() + plan.stages[0].end_layer;
      const double first = std::accumulate(work.begin(), cut, 0.0),
                   second = std::accumulate(cut, work.end(), 0.0) / pace;
      EXPECT_NEAR(first, second, *std::ranges::max_element(work)) << plan.method;  // no cut halves a layer
    }
}

TEST(PlanOnUnlikeNodes, FitsIntoTheMemoryOfTheNodesThatEachStageLiesOn) {
  const auto priced = [](std::int64_t first, std::int64_t second) {
    Cluster a = slow_node(), b = fast_node();
    a.memory_bytes = first;
    b.memory_bytes = second;
    return Priced(cluster_of_parts("mixed", {a, b}), stages_of_two({3, 1}, "tensor"));
  };
  const Priced ample = priced(1 << 30, 1 << 30);
  const auto bytes = [&](MeshIndex mesh) { return ample.plan.prediction.meshes[mesh].memory.total; };
  ASSERT_GT(bytes(0_m), bytes(1_m));
  const Priced just = priced(bytes(0_m), bytes(1_m));
  EXPECT_EQ(just.plan.prediction.meshes[0_m].memory.total, bytes(0_m));
  EXPECT_THAT([&] { priced(bytes(1_m), bytes(0_m)); },
              ThrowsMessage<Error>(AllOf(HasSubstr("layers 0 to 2 need"), HasSubstr(" is there"))));
}

/// The layers that each stage has.
std::vector<int> layers_of(const std::vector<StageRequest>& stages) {
  std::vector<int> layers;
  for (const StageRequest& stage : stages) layers.push_back(stage.end_layer - stage.first_layer);
  return layers;
}

TEST(EvenedStages, HaveLayersByWhatTheyTakeWhereTheyLie) {
  const Graph graph = narrow_and_wide(512, 8);  // whose layers take about equally long
  const PlanningGraph planning = prepare(graph);
  const CostModel costs(mixed());
  CostTable book(graph, costs);
  book.on({2});
  Proposal found;
  found.requests = {{.first_layer = 0, .end_layer = 4, .mesh = {2}},
                    {.first_layer = 4, .end_layer = 8, .mesh = {2}, .first_device = 2_d}};
  found.solutions.resize(2);
  const std::vector<StageFloor> floors = stage_floors(planning, book, found.requests);
  for (std::size_t s = 0; s < 2; ++s) found.solutions[s].step_s = 2 * floors[s].step_s;
  SearchSpace anywhere, at_cuts, at_five;
  at_cuts.cuts = {0, 3, 4, 8};
  at_five.needed_cuts = {5};
  EXPECT_THAT(layers_of(evened_out(planning, book, anywhere, found)), ElementsAre(2, 6));
  EXPECT_THAT(layers_of(evened_out(planning, book, at_cuts, found)), ElementsAre(3, 5));
  EXPECT_THAT(layers_of(evened_out(planning, book, at_five, found)), ElementsAre(5, 3));
  found.solutions[1].step_s *= 3;  // no faster than the other, for what was not bounded
  EXPECT_LT(layers_of(evened_out(planning, book, anywhere, found))[1], 6);
}

/// "search" looks at all devices' plans; every way to cut four layers into two stages of two is one of them.
TEST(PlanOnUnlikeNodes, IsBoundedByWhatTheFastestNodesWouldTake) {
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = kMicroBatches;
  const Plan found = plan_quietly(small_model(), mixed(), options);
  EXPECT_EQ(found.devices(), 4);
  EXPECT_GT(found.prediction.lower_bound_s, 0);
  for (const std::vector<int>& layers : {std::vector{1, 3}, {2, 2}, {3, 1}}) {
    const Plan pinned = plan_quietly(small_model(), mixed(), stages_of_two(layers, "free"));
    EXPECT_GE(pinned.prediction.step_s, found.prediction.lower_bound_s);
    EXPECT_GE(pinned.prediction.step_s, pinned.prediction.lower_bound_s);
  }
}

TEST(PlanOnUnlikeNodes, OfEveryKindTakesAsLongAsTheBoundOrLonger) {
  const PlanningModel model{"narrow", "", 8,
                            [](std::int64_t samples) { return narrow_and_wide(samples, 3); }};
  PlannerOptions options;
  options.method = "search";
  options.micro_batches = kMicroBatches;
  for (const double faster : {1.5, 4.0, 20.0})
    for (const bool slow_first : {true, false}) {
      Cluster slow = slow_node(), fast = slow_node();
      fast.name = "fast";
      slow.devices_per_node = fast.devices_per_node = 1;
      slow.f32_flops_per_s = 1e7;
      fast.f32_flops_per_s = slow.f32_flops_per_s * faster;
      fast.memory_bytes_per_s *= faster;
      const Cluster cluster =
          cluster_of_parts("mixed", slow_first ? std::vector{slow, fast} : std::vector{fast, slow});
      const CostModel costs(cluster);
      EveryPlan every(model, costs, {kMicroBatches}, {.plans = 20'000});
      const EveryPlan::Best best = every.best();
      ASSERT_GT(best.plans, 100);
      const Prediction found = plan_quietly(model, cluster, options).prediction;
      EXPECT_GT(found.lower_bound_s, 0);
      // Sums of the same seconds in another order.
      EXPECT_LE(found.lower_bound_s, best.step_s * (1 + 1e-9)) << faster;
    }
}

TEST(PlanOnUnlikeNodes, KeepsThemInItsFile) {
  const TemporaryFolder folder;
  const Priced priced(mixed(), stages_of_two({1, 3}, "data"));
  write_plan(folder.path() / "plan.h5", priced.plan, priced.graph, {});
  EXPECT_EQ(read_plan(folder.path() / "plan.h5"), priced.plan);
  const H5Reader file(folder.path() / "plan.h5", kPlanFormat, kPlanVersion);
  EXPECT_THAT(file.strings("/cluster/parts/name"), ElementsAre("slow", "fast"));
  EXPECT_THAT(file.doubles("/cluster/parts/f32_flops_per_s"), ElementsAre(1e11, 3e11));
  EXPECT_THAT(file.int64s("/cluster/parts/nodes"), ElementsAre(1, 1));
}

TEST(PlanOnUnlikeNodes, SaysWhatItsCostsAreExtrapolatedFrom) {
  const TemporaryFolder folder;
  Priced priced(mixed(), stages_of_two({1, 3}, "data"));
  priced.plan.profile_fingerprint = "f00";
  priced.plan.extrapolated_from = "CPU, 1 thread";
  write_plan(folder.path() / "plan.h5", priced.plan, priced.graph, {});
  EXPECT_EQ(read_plan(folder.path() / "plan.h5"), priced.plan);
  EXPECT_FALSE(priced.plan.is_measured());
  EXPECT_THAT(plan_summary(plan_facts(priced.plan, priced.graph), "plan.h5"),
              AllOf(HasSubstr(" (extrapolated from a profile): "),
                    HasSubstr("; costs are extrapolated from measurements on CPU, 1 thread")));
}

TEST(PlanOnUnlikeNodes, IsExplainedByTheNodesOfEachStage) {
  Cluster roomy = fast_node();
  roomy.memory_bytes *= 2;
  const Priced priced(cluster_of_parts("mixed", {slow_node(), roomy}), stages_of_two({2, 2}, "data"));
  const PlanFacts facts = plan_facts(priced.plan, priced.graph);
  EXPECT_THAT(plan_summary(facts, "plan.h5"),
              AllOf(HasSubstr("  2: 0 - 1 (slow)  "), HasSubstr("  2: 2 - 3 (fast)  "),
                    HasSubstr(" of 1.00 GiB ("), HasSubstr(" of 2.00 GiB ("),
                    HasSubstr("  memory per device  "), Not(HasSubstr("took all nodes for the slowest"))));
  EXPECT_THAT(plan_details(facts), AllOf(HasSubstr("on 2 devices 2 to 3 of fast, mesh 2"),
                                         HasSubstr(" of 2.00 GiB per device: parameters ")));
}

}  // namespace
}  // namespace alpa
