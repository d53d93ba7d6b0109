// What ranks without a stage do (Cluster::servers).
#include "libalpa/program/lower/servers.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/order/served_sums.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/state_tiles.h"
#include "libalpa/program/text.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kNodes = 4;

/// So wide that its weights are long and its biases short.
Graph wide_gpt(std::int64_t samples) {
  return training_graph(tiny_gpt_forward(samples, 2, 8, 128, 4, 256), op_catalog(), {});
}

/// Data-parallel, all states on every device.
Lowered with_so_many(int servers, const std::string& sync = "each") {
  PlannerOptions options;
  options.sync = sync;
  options.pin =
      parse_pin("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"none\"\n", "pin");
  Cluster cluster = small_cluster(1);
  cluster.nodes = kNodes;
  cluster.between_nodes = {1e-6, 1e7};
  cluster.servers = servers;
  Lowered lowered;
  lowered.plan = plan_quietly({"wide", "", 8, wide_gpt}, cluster, options);
  lowered.graph = wide_gpt(8);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

template <class Body>
std::vector<Body> bodies(const MeshProgram& mesh) {
  std::vector<Body> found;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* const body = std::get_if<Body>(&instruction.body)) found.push_back(*body);
  return found;
}

double step_s(const Lowered& lowered) {
  return simulate(lowered.program, CostModel(lowered.plan.cluster)).step_s;
}

TEST(ServerProgram, ServesEachLongSumInItsTurnAndAddsNothingToScalars) {
  for (const std::string sync : {"each", "one"}) {
    const Lowered lowered = with_so_many(2, sync);
    EXPECT_NO_THROW(verify(lowered.program));
    const MeshProgram &mesh = lowered.program.meshes[MeshIndex(0)], &servers = *lowered.program.servers;
    std::vector<Serve> expected;
    for (const Convert& convert : bodies<Convert>(mesh)) {
      const TensorType& tile = mesh.buffers[convert.from].tile;
      const bool is_long = convert.step.kind == ConversionKind::all_reduce &&
                           byte_count(tile) * kNodes > kGatheredAllReduceBytes;
      EXPECT_EQ(convert.is_served, is_long);
      if (is_long) expected.push_back({0, element_count(tile.shape), tile.dtype, false});
    }
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(bodies<Serve>(servers), expected);
    EXPECT_EQ(bodies<GlobalSum>(servers).size(), 1u);
    EXPECT_EQ(bodies<Zero>(servers).size(), bodies<GlobalSum>(servers)[0].scalars.size());
    EXPECT_EQ(bodies<Compute>(servers).size(), 0u);
  }
}

TEST(ServerProgram, HasRanksAfterThoseOfTheMeshAndNoStates) {
  const Lowered lowered = with_so_many(2);
  EXPECT_EQ(lowered.plan.devices(), kNodes);
  EXPECT_EQ(lowered.plan.ranks(), kNodes + 2);
  EXPECT_EQ(device_count(lowered.program), kNodes + 2);
  for (int server = 0; server < 2; ++server) {
    const DeviceIndex device(kNodes + server);
    EXPECT_EQ(place_of(lowered.program, device).mesh, MeshIndex());
    EXPECT_EQ(place_of(lowered.program, device).coordinate, std::vector{server});
    EXPECT_TRUE(state_tiles(lowered.graph, lowered.program, device).empty());
  }
  EXPECT_LT(lowered.program.servers->memory.total, 1024);
}

// Sums in turn, which are long beside their latencies: a step is shorter by what all of them are.
TEST(ServerProgram, MakesAStepShorterByWhatItsSumsAre) {
  const Lowered alone = with_so_many(0, "one"), served = with_so_many(kNodes, "one");
  EXPECT_FALSE(alone.program.servers);
  double sums_s = 0, latencies_s = 0;
  const CostModel costs(alone.plan.cluster);
  for (const Convert& convert : bodies<Convert>(served.program.meshes[MeshIndex(0)]))
    if (convert.is_served) {
      latencies_s += 2 * costs.cluster().between_nodes.latency_s;
      sums_s += costs.collective_seconds(
          CollectiveKind::all_reduce, {kNodes, 1},
          static_cast<double>(byte_count(served.program.meshes[MeshIndex(0)].buffers[convert.from].tile)), 1);
    }
  // 2 (n - 1) / n = 1.5 times the bytes become 1; latencies, two of each, stay.
  EXPECT_NEAR(step_s(alone) - step_s(served), (sums_s - latencies_s) / 3, 1e-9 * sums_s);
  EXPECT_GT(sums_s, 0.1 * step_s(alone));
}

TEST(ServerProgram, IsPartOfWhatAPlanIsKnownBy) {
  const Lowered two = with_so_many(2), three = with_so_many(3);
  EXPECT_NE(two.plan.program_fingerprint, three.plan.program_fingerprint);
  EXPECT_TRUE(program_text(two.program, two.graph).find("\n    serve axis 0 ") != std::string::npos)
      << "no such line";
}

TEST(ServerProgram, IsRefusedWhereItDoesNotServeWhatTheMeshWaitsFor) {
  const auto expect_refused = [](auto change, const char* why) {
    Lowered lowered = with_so_many(2);
    change(*lowered.program.servers);
    EXPECT_THAT([&] { verify(lowered.program); }, ThrowsMessage<Error>(HasSubstr(why)));
  };
  const auto sums = [](MeshProgram& servers) -> std::vector<Instruction>& {
    return std::ranges::find_if(servers.segments,
                                [](const Segment& segment) {
                                  return std::ranges::any_of(
                                      segment.instructions, [](const Instruction& instruction) {
                                        return std::holds_alternative<Serve>(instruction.body);
                                      });
                                })
        ->instructions;
  };
  const char* const others = "do not help with what the ";
  expect_refused([&](MeshProgram& s) { std::get<Serve>(sums(s)[0].body).elements += 1; }, others);
  expect_refused([&](MeshProgram& s) { sums(s).erase(sums(s).begin()); }, others);
  expect_refused([&](MeshProgram& s) { sums(s)[0].when = When::first_micro_batch; }, others);
  expect_refused([](MeshProgram& s) { s.schedule.pop_back(); }, "run other segments");
  expect_refused(
      [](MeshProgram& s) {
        for (Segment& segment : s.segments)
          std::erase_if(segment.instructions,
                        [](const Instruction& i) { return std::holds_alternative<Zero>(i.body); });
      },
      "reads");
}

// As a mesh may have sums among what it makes again once the norm is known to bind.
TEST(ServerProgram, MayServeSumsOfCorrectedUpdates) {
  Program program = with_so_many(2).program;
  MeshProgram& servers = *program.servers;
  std::vector<Instruction>& update = segment_of_kind(servers, SegmentKind::update).instructions;
  Instruction serve = update.back();
  serve.body = Serve{0, 1 << 20, DType::f32, false};
  serve.when = When::norm_binds;
  update.push_back(serve);
  program.corrects_updates = true;
  EXPECT_NO_THROW(verify(program_of_servers(program)));
  program.corrects_updates = false;
  EXPECT_THROW(verify(program_of_servers(program)), Error);
}

TEST(ServerProgram, IsOfAPlanWhoseMeshesHaveAllDevicesThatCompute) {
  Lowered lowered = with_so_many(2);
  lowered.plan.cluster.nodes = kNodes + 1;
  EXPECT_THAT([&] { check_plan(lowered.plan, lowered.graph); },
              ThrowsMessage<Error>(HasSubstr("its meshes have 4 of 5 devices")));
}

}  // namespace
}  // namespace alpa
