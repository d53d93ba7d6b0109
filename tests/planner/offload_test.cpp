// States in the host's memory, by decision of the planner.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kEnough = 1 << 30;

Cluster with_moves(int devices, std::int64_t memory_bytes = kEnough) {
  Cluster cluster = small_cluster(devices);
  cluster.host_bytes_per_s = 1e9;
  cluster.memory_bytes = memory_bytes;
  return cluster;
}

/// Weights of 4096 to 9216 numbers, beside which activations are small: a batch of 8.
PlanningModel wide_model() {
  return {"wide", "", 8, [](std::int64_t samples) {
            GraphBuilder g(op_catalog());
            g.graph().samples = samples;
            ValueIndex x;
            for (std::int64_t l = 0; l < 12; ++l) {
              const std::int64_t from = 64 + 16 * (l % 3), to = 64 + 16 * ((l + 1) % 3);
              const std::string name = "layer." + std::to_string(l);
              g.begin_layer(name);
              if (l == 0) x = g.input(InputKind::data, {DType::f32, {samples, from}}, "x");
              const ValueIndex weight =
                  g.state(name + ".weight", {DType::f32, {from, to}}, {Initializer::Kind::normal, 0.1}, true);
              x = g.add("gelu", {g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}})});
            }
            g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
            return training_graph(g.finish(), op_catalog(), {});
          }};
}

/// With nothing else to save memory by.
PlannerOptions options_with(const std::string& offload, const std::string& method) {
  PlannerOptions options = without_buckets();
  options.offload = offload;
  options.method = method;
  options.micro_batches = 1;
  options.rematerialize = Rematerialize::never;
  return options;
}

std::int64_t fullest(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

class Offloading : public testing::TestWithParam<const char*> {};

TEST_P(Offloading, FitsWhatTakesHalfAsMuchAgainAsThereIs) {
  const int devices = GetParam() == std::string("serial") ? 1 : 2;
  const Plan free = plan_quietly(wide_model(), with_moves(devices), options_with("none", GetParam()));
  const std::int64_t limit = fullest(free) * 2 / 3;
  EXPECT_THROW(plan_quietly(wide_model(), with_moves(devices, limit), options_with("none", GetParam())),
               Error);
  const Plan plan =
      plan_quietly(wide_model(), with_moves(devices, limit), options_with("optimizer", GetParam()));
  EXPECT_LE(fullest(plan), limit);
  EXPECT_FALSE(plan.on_host.empty());
  EXPECT_GT(plan.prediction.meshes[0_m].memory.host, 0);
  EXPECT_GT(plan.prediction.step_s, free.prediction.step_s);
  EXPECT_FALSE(plan.prediction.gap());  // which is of plans that offload all
  // To the byte, what is lowered is what was promised.
  const Graph graph = wide_model().graph(plan.micro_batch_samples);
  check_plan(plan, graph);
  const Program program = lower(graph, plan);
  for (const MeshIndex m : plan.meshes.indices())
    EXPECT_EQ(program.meshes[m].memory, plan.prediction.meshes[m].memory);
}

INSTANTIATE_TEST_SUITE_P(Methods, Offloading, testing::Values("serial", "data-parallel", "inter-only"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Of a knapsack: the more memory there is, the less is moved, and the less time that takes.
TEST(OffloadOption, MovesWhatTheDeviceHasNoRoomForAndNoMore) {
  const Plan free = plan_quietly(wide_model(), with_moves(1), options_with("none", "serial"));
  double before_s = infinity;
  std::size_t before = std::size_t(-1);
  for (const int percent : {66, 75, 85, 95}) {
    const std::int64_t limit = fullest(free) * percent / 100;
    const Plan plan = plan_quietly(wide_model(), with_moves(1, limit), options_with("optimizer", "serial"));
    const MemoryUse& memory = plan.prediction.meshes[0_m].memory;
    EXPECT_LE(memory.total, limit);
    EXPECT_LT(plan.on_host.size(), before) << percent;
    EXPECT_LT(plan.prediction.step_s, before_s) << percent;
    before = plan.on_host.size();
    before_s = plan.prediction.step_s;
    // No state that is away would fit into what is left.
    const MeshProgram mesh = lower(wide_model().graph(8), plan).meshes[0_m];
    for (const Buffer& buffer : mesh.buffers)
      EXPECT_TRUE(buffer.space == MemorySpace::device || buffer.bytes > limit - memory.total) << buffer.name;
  }
}

TEST(OffloadOption, OfNothingIsThePlanWithout) {
  const PlannerOptions without = options_with("none", "data-parallel"),
                       with = options_with("optimizer", "data-parallel");
  const Plan plan = plan_quietly(wide_model(), with_moves(2), with);
  EXPECT_TRUE(plan.on_host.empty());
  EXPECT_EQ(plan.prediction.step_s, plan_quietly(wide_model(), with_moves(2), without).prediction.step_s);
}

TEST(OffloadOption, IsDoneOfItsOwnAccordWhereNothingFitsWithoutOrItIsFaster) {
  const PlannerOptions options = options_with("auto", "serial");
  const Plan free = plan_quietly(wide_model(), with_moves(1), options);
  EXPECT_TRUE(free.on_host.empty());
  EXPECT_TRUE(free.prediction.gap());
  EXPECT_FALSE(plan_quietly(wide_model(), with_moves(1, fullest(free) * 2 / 3), options).on_host.empty());
  // Where to recompute is the other way.
  PlannerOptions recomputing = options;
  recomputing.rematerialize = Rematerialize::automatic;
  const std::int64_t all = fullest(plan_quietly(small_model(), with_moves(1), options));
  Cluster cluster = with_moves(1, all * 99 / 100);
  cluster.host_bytes_per_s = 1e13;
  cluster.launch_s = 0;
  EXPECT_FALSE(plan_quietly(small_model(), cluster, recomputing).on_host.empty());
  cluster.host_bytes_per_s = 1e5;
  EXPECT_TRUE(plan_quietly(small_model(), cluster, recomputing).on_host.empty());
}

TEST(OffloadOption, KeepsToTheMemoryOfANodesHost) {
  const Plan free = plan_quietly(wide_model(), with_moves(2), options_with("none", "data-parallel"));
  Cluster cluster = with_moves(2, fullest(free) * 2 / 3);
  const PlannerOptions options = options_with("optimizer", "data-parallel");
  const std::int64_t of_both =
      2 * plan_quietly(wide_model(), cluster, options).prediction.meshes[0_m].memory.host;
  cluster.host_memory_bytes = of_both;
  EXPECT_FALSE(plan_quietly(wide_model(), cluster, options).on_host.empty());
  cluster.host_memory_bytes = of_both - 1;
  EXPECT_THAT([&] { plan_quietly(wide_model(), cluster, options); },
              ThrowsMessage<Error>(HasSubstr("a node's host lacks 1 B for what rests there")));
}

// Of 16 bytes a parameter 8 are of updates alone, 4 are parameters and 4 sums of gradients: the last stay.
TEST(OffloadOption, OfStatesFitsWhatThoseOfUpdatesAloneDoNotMakeRoomFor) {
  const Plan free = plan_quietly(wide_model(), with_moves(1), options_with("none", "serial"));
  const Cluster small = with_moves(1, fullest(free) * 2 / 5);
  EXPECT_THROW(plan_quietly(wide_model(), small, options_with("optimizer", "serial")), Error);
  for (const char* offload : {"states", "auto"}) {
    const Plan plan = plan_quietly(wide_model(), small, options_with(offload, "serial"));
    const Graph graph = wide_model().graph(plan.micro_batch_samples);
    check_plan(plan, graph);
    EXPECT_LE(fullest(plan), small.memory_bytes);
    EXPECT_TRUE(std::ranges::any_of(graph.states, [&](const State& state) {
      return state.is_parameter && plan.rests_on_host(state.value);
    }));
    EXPECT_EQ(lower(graph, plan).meshes[0_m].memory, plan.prediction.meshes[0_m].memory);
  }
  // With more room parameters are back first, which would be moved more often.
  const Plan more =
      plan_quietly(wide_model(), with_moves(1, fullest(free) * 2 / 3), options_with("states", "serial"));
  for (const State& state : wide_model().graph(8).states)
    EXPECT_FALSE(state.is_parameter && more.rests_on_host(state.value)) << state.name;
}

TEST(OffloadOption, LeavesOutUpdatesThatMayBeMadeAgain) {
  const Plan free = plan_quietly(wide_model(), with_moves(2), options_with("none", "inter-only"));
  PlannerOptions options = options_with("optimizer", "inter-only");
  options.updates = "auto";
  const Plan plan = plan_quietly(wide_model(), with_moves(2, fullest(free) * 2 / 3), options);
  EXPECT_FALSE(plan.on_host.empty());
  EXPECT_NE(plan.updates, UpdateOrder::before_norm);
  check_plan(plan, wide_model().graph(plan.micro_batch_samples));
}

TEST(OffloadOption, IsRefusedWhereNothingIsKnownOfMoves) {
  EXPECT_THAT([] { plan_quietly(wide_model(), small_cluster(1), options_with("optimizer", "serial")); },
              ThrowsMessage<Error>(HasSubstr("nothing is known of moves")));
  PlannerOptions options = options_with("optimizer", "serial");
  options.updates = "before-norm";
  EXPECT_THAT([&] { plan_quietly(wide_model(), with_moves(1), options); },
              ThrowsMessage<Error>(HasSubstr("--offload optimizer together with --updates before-norm")));
}

TEST(OffloadOption, MayBeSaidByAPin) {
  PlannerOptions options = without_buckets();
  options.pin = parse_pin("offload = \"optimizer\"\n[[stage]]\nlayers = 12\nmesh = [1]\naxes = []\n", "pin");
  const Plan free = plan_quietly(wide_model(), with_moves(1), options);
  EXPECT_TRUE(free.on_host.empty());
  EXPECT_FALSE(plan_quietly(wide_model(), with_moves(1, fullest(free) * 2 / 3), options).on_host.empty());
  options.offload = "auto";
  EXPECT_THAT([&] { plan_quietly(wide_model(), with_moves(1), options); },
              ThrowsMessage<Error>(HasSubstr("--offload auto together with --pin")));
}

}  // namespace
}  // namespace alpa
