// Activations in the host's memory, by decision of the planner, in place of recomputing them.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/pin.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A cluster whose links to the host are as fast as `bytes_per_s`.
Cluster moving(int devices, double bytes_per_s = 1e9, std::int64_t memory_bytes = 1 << 30) {
  Cluster cluster = small_cluster(devices);
  cluster.host_bytes_per_s = bytes_per_s;
  cluster.memory_bytes = memory_bytes;
  return cluster;
}

/// A batch of 1024 beside weights of 64 x 64: what is saved is most of what there is.
PlanningModel long_batch_model() {
  return {"long", "", 1024, [](std::int64_t samples) {
            GraphBuilder g(op_catalog());
            g.graph().samples = samples;
            ValueIndex x;
            for (int l = 0; l < 12; ++l) {
              const std::string name = "layer." + std::to_string(l);
              g.begin_layer(name);
              if (l == 0) x = g.input(InputKind::data, {DType::f32, {samples, 64}}, "x");
              const ValueIndex weight =
                  g.state(name + ".weight", {DType::f32, {64, 64}}, {Initializer::Kind::normal, 0.1}, true);
              x = g.add("gelu", {g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}})});
            }
            g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
            return training_graph(g.finish(), op_catalog(), {});
          }};
}

PlannerOptions asking_for(const std::string& offload, const std::string& method, int micro_batches = 2,
                          const char* overlap = "none") {
  PlannerOptions options = without_buckets();
  options.offload = offload;
  options.method = method;
  options.micro_batches = micro_batches;
  options.overlap = overlap;
  return options;
}

std::int64_t fullest_mesh(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

int offloaded_layers(const Plan& plan) {
  int layers = 0;
  for (const StagePlan& stage : plan.stages) layers += stage.offloads() ? stage.recomputed_layers : 0;
  return layers;
}

struct OffloadedMethod {
  const char *method, *schedule;
  int devices, micro_batches;
};

class OffloadingActivations : public testing::TestWithParam<OffloadedMethod> {};

TEST_P(OffloadingActivations, FitsWhatTakesHalfAsMuchAgainAsThereIs) {
  const auto& [method, schedule, devices, micro_batches] = GetParam();
  PlannerOptions keeping = asking_for("none", method, micro_batches),
                 options = asking_for("activations", method, micro_batches);
  keeping.rematerialize = Rematerialize::never;
  keeping.schedule = options.schedule = schedule;
  const Plan free = plan_quietly(long_batch_model(), moving(devices), keeping);
  const std::int64_t limit = fullest_mesh(free) * 2 / 3;
  const Cluster cluster = moving(devices, 1e9, limit);
  EXPECT_THROW(plan_quietly(long_batch_model(), cluster, keeping), Error);
  const Plan plan = plan_quietly(long_batch_model(), cluster, options);
  EXPECT_LE(fullest_mesh(plan), limit);
  EXPECT_GT(offloaded_layers(plan), 0);
  EXPECT_GT(plan.prediction.meshes[0_m].memory.host, 0);
  EXPECT_GT(plan.prediction.step_s, free.prediction.step_s);
  EXPECT_FALSE(plan.prediction.gap());  // none is proven
  // To the byte, what is lowered is what was promised.
  const Graph graph = long_batch_model().graph(plan.micro_batch_samples);
  check_plan(plan, graph);
  const Program program = lower(graph, plan);
  for (const MeshIndex m : plan.meshes.indices())
    EXPECT_EQ(program.meshes[m].memory, plan.prediction.meshes[m].memory);
}

INSTANTIATE_TEST_SUITE_P(Methods, OffloadingActivations,
                         testing::Values(OffloadedMethod{"serial", "1f1b", 1, 1},
                                         OffloadedMethod{"data-parallel", "1f1b", 2, 2},
                                         OffloadedMethod{"inter-only", "1f1b", 2, 4},
                                         OffloadedMethod{"inter-only", "split-1f1b", 2, 4},
                                         OffloadedMethod{"search", "auto", 2, 4}),
                         [](const auto& each) {
                           std::string name = std::string(each.param.method) + "_" + each.param.schedule;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The first layers of a stage, as few as must be: what they make is moved the longest ahead of its use.
TEST(OffloadedActivations, AreThoseThatTheDeviceHasNoRoomForAndNoMore) {
  const Plan free = plan_quietly(long_batch_model(), moving(1), asking_for("activations", "serial"));
  EXPECT_EQ(offloaded_layers(free), 0);
  int before = 13;
  double before_s = infinity;
  for (const int percent : {60, 70, 80, 90}) {
    const std::int64_t limit = fullest_mesh(free) * percent / 100;
    const Plan plan =
        plan_quietly(long_batch_model(), moving(1, 1e9, limit), asking_for("activations", "serial"));
    EXPECT_LE(fullest_mesh(plan), limit);
    EXPECT_LT(offloaded_layers(plan), before) << percent;
    EXPECT_LT(plan.prediction.step_s, before_s) << percent;
    before = offloaded_layers(plan);
    before_s = plan.prediction.step_s;
  }
}

// To recompute a layer here takes a product of 512 x 64 x 64 a micro-batch, some 0.05 ms; to move what it
// saves, 128 KiB each way, as good as nothing at 1 TB/s, and 26 ms at 10 MB/s.
TEST(OffloadedActivations, AreWeighedAgainstRecomputingThem) {
  const std::int64_t all =
      fullest_mesh(plan_quietly(long_batch_model(), moving(1), asking_for("none", "serial")));
  Cluster cluster = moving(1, 1e12, all * 2 / 3);
  EXPECT_GT(offloaded_layers(plan_quietly(long_batch_model(), cluster, asking_for("auto", "serial"))), 0);
  cluster.host_bytes_per_s = 1e7;
  const Plan slow = plan_quietly(long_batch_model(), cluster, asking_for("auto", "serial"));
  EXPECT_EQ(offloaded_layers(slow), 0);
  EXPECT_GT(slow.stages[0_s].recomputed_layers, 0);
}

TEST(OffloadedActivations, AreMoreWhereThatLeavesRoomToFetchThemAhead) {
  const std::int64_t all =
      fullest_mesh(plan_quietly(long_batch_model(), moving(1), asking_for("none", "serial")));
  const Cluster cluster = moving(1, 1e10, all * 3 / 4);
  const Plan in_turn = plan_quietly(long_batch_model(), cluster, asking_for("activations", "serial")),
             beside =
                 plan_quietly(long_batch_model(), cluster, asking_for("activations", "serial", 2, "all"));
  EXPECT_GT(offloaded_layers(beside), offloaded_layers(in_turn));
  EXPECT_LT(beside.prediction.step_s, in_turn.prediction.step_s);
  EXPECT_LE(fullest_mesh(beside), cluster.memory_bytes);
}

TEST(OffloadedActivations, MayGoWithStatesOnTheHost) {
  const Plan free = plan_quietly(long_batch_model(), moving(1), asking_for("none", "serial", 8));
  const Cluster cluster = moving(1, 1e9, fullest_mesh(free) / 2);
  const Plan plan = plan_quietly(long_batch_model(), cluster, asking_for("both", "serial", 8));
  EXPECT_GT(offloaded_layers(plan), 0);
  EXPECT_FALSE(plan.on_host.empty());
  EXPECT_LE(fullest_mesh(plan), cluster.memory_bytes);
}

TEST(OffloadedActivations, KeepToTheMemoryOfTheirHost) {
  const Plan free = plan_quietly(long_batch_model(), moving(1), asking_for("none", "serial"));
  Cluster cluster = moving(1, 1e9, fullest_mesh(free) * 2 / 3);
  const PlannerOptions options = asking_for("activations", "serial");
  const std::int64_t there =
      plan_quietly(long_batch_model(), cluster, options).prediction.meshes[0_m].memory.host;
  cluster.host_memory_bytes = there - 1;
  EXPECT_THAT([&] { plan_quietly(long_batch_model(), cluster, options); },
              ThrowsMessage<Error>(HasSubstr("a node's host lacks 1 B for what rests there")));
  // More layers there would be faster beside computation, and are left where there is no room for them.
  PlannerOptions beside = options;
  beside.overlap = "all";
  const auto host_bytes = [&] {
    return plan_quietly(long_batch_model(), cluster, beside).prediction.meshes[0_m].memory.host;
  };
  cluster.host_memory_bytes = 0;
  EXPECT_GT(host_bytes(), there);
  cluster.host_memory_bytes = there;
  EXPECT_LE(host_bytes(), there);
}

// Parameters on the host have updates end the step; where all come back, updates come as asked for.
TEST(OffloadedParameters, ThatAllComeBackLeaveUpdatesToTheNextForward) {
  PlannerOptions options = asking_for("states", "serial");
  options.updates = "next-forward";
  const Plan plan = plan_quietly(long_batch_model(), moving(1), options);
  EXPECT_TRUE(plan.on_host.empty());
  EXPECT_EQ(plan.updates, UpdateOrder::next_forward);
}

TEST(OffloadedActivations, AreRefusedBesideWhatSaysOtherwise) {
  EXPECT_THAT([] { plan_quietly(long_batch_model(), small_cluster(1), asking_for("activations", "serial")); },
              ThrowsMessage<Error>(HasSubstr("nothing is known of moves")));
  PlannerOptions options = asking_for("activations", "serial");
  options.rematerialize = Rematerialize::always;
  EXPECT_THAT([&] { plan_quietly(long_batch_model(), moving(1), options); },
              ThrowsMessage<Error>(HasSubstr("--offload activations together with --rematerialize")));
}

TEST(OffloadedActivations, MayBePinned) {
  PlannerOptions options = without_buckets();
  const std::string stage =
      "micro_batches = 2\n[[stage]]\nlayers = 12\nmesh = [1]\naxes = []\nrecomputed_layers = 5\n"
      "recompute_form = \"offload\"\n";
  options.pin = parse_pin(stage, "pin");
  EXPECT_EQ(offloaded_layers(plan_quietly(long_batch_model(), moving(1), options)), 5);
  EXPECT_THAT([&] { plan_quietly(long_batch_model(), small_cluster(1), options); },
              ThrowsMessage<Error>(HasSubstr("recompute_form = \"offload\": nothing is known of moves")));
}

}  // namespace
}  // namespace alpa
