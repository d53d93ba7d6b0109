// Servers that hold the states (Plan::staleness).
#include "libalpa/plan/states_at_servers.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/state_tiles.h"
#include "libalpa/semantics/graph_uses.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kRanks = 4;

/// So wide that servers share its weights out by rows, but have its biases whole.
Graph broad_gpt(std::int64_t samples) {
  return training_graph(tiny_gpt_forward(samples, 2, 8, 192, 4, 256), op_catalog(), {});
}

Lowered stale(int servers, int staleness, int micro_batches = 1) {
  PlannerOptions options;
  options.servers = servers;
  options.staleness = staleness;
  options.micro_batches = micro_batches;
  Cluster cluster = small_cluster(1);
  cluster.nodes = kRanks;
  cluster.servers = servers;
  Lowered lowered;
  lowered.plan = plan_quietly({"broad", "", 8, broad_gpt}, cluster, options);
  lowered.graph = broad_gpt(lowered.plan.micro_batch_samples);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

struct Found {
  const Exchange* exchange;
  SegmentKind segment;
  When when;
};

std::vector<Found> exchanges(const MeshProgram& mesh) {
  std::vector<Found> found;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* const exchange = std::get_if<Exchange>(&instruction.body))
        found.push_back({exchange, segment.kind, instruction.when});
  return found;
}

std::map<int, std::int64_t> bytes_of_servers(const MeshProgram& mesh, const Exchange& exchange) {
  std::map<int, std::int64_t> bytes;
  for (std::size_t i = 0; i < exchange.tensors.size(); ++i)
    bytes[exchange.server[i]] += byte_count(mesh.buffers[exchange.tensors[i]].tile);
  return bytes;
}

TEST(StatesAtServers, AreUpdatedThereByWhatDevicesPush) {
  for (const int servers : {1, 3}) {
    const Lowered lowered = stale(servers, 2, 2);
    verify(lowered.program);
    const GraphUses uses(lowered.graph);
    const MeshProgram &mesh = lowered.program.meshes[MeshIndex(0)], &holder = *lowered.program.servers;
    const std::vector<Found> of_devices = exchanges(mesh), of_servers = exchanges(holder);
    ASSERT_EQ(of_devices.size(), 2u);
    ASSERT_EQ(of_servers.size(), 2u);
    EXPECT_EQ(of_devices[0].exchange->kind, Exchange::Kind::take);
    EXPECT_EQ(of_devices[0].segment, SegmentKind::forward);
    EXPECT_EQ(of_devices[0].when, When::first_micro_batch);
    EXPECT_EQ(of_devices[1].exchange->kind, Exchange::Kind::push);
    EXPECT_EQ(of_devices[1].segment, SegmentKind::update);
    EXPECT_EQ(of_servers[0].exchange->kind, Exchange::Kind::collect);
    EXPECT_EQ(of_servers[1].exchange->kind, Exchange::Kind::publish);
    // What one side sends is what the other receives, server by server.
    EXPECT_EQ(bytes_of_servers(mesh, *of_devices[1].exchange),
              bytes_of_servers(holder, *of_servers[0].exchange));
    EXPECT_EQ(bytes_of_servers(mesh, *of_devices[0].exchange),
              bytes_of_servers(holder, *of_servers[1].exchange));
    // Messages that may be on their way: of so many steps, and that which is made.
    EXPECT_EQ(mesh.buffers[of_devices[1].exchange->messages].slots, 3);
    EXPECT_EQ(holder.buffers[of_servers[1].exchange->messages].slots, 4);
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions) {
        const auto* const compute = std::get_if<Compute>(&instruction.body);
        if (!compute) continue;
        const Node& node = node_of(lowered.graph, compute->node);
        EXPECT_LT(uses.state_after_value(node.results[0]), 0) << node.name;
      }
  }
}

TEST(StatesAtServers, AreEachAtOne) {
  const Lowered lowered = stale(3, 1);
  check_plan(lowered.plan, lowered.graph);
  Plan without = lowered.plan;
  without.sync.pop_back();
  EXPECT_THAT([&] { check_plan(without, lowered.graph); },
              ThrowsMessage<Error>(HasSubstr("servers hold its states, but none the sum of gradients")));
  Plan beyond = lowered.plan;
  beyond.sync.front().owners.front().owner = 3;
  EXPECT_THAT([&] { check_plan(beyond, lowered.graph); },
              ThrowsMessage<Error>(HasSubstr("rows of owner 3, expected")));
}

// Gradients are those of a device that keeps step, and nothing is counted twice.
TEST(StatesAtServers, AreInTheMemoryOfServersAlone) {
  const Lowered lowered = stale(3, 1);
  Plan in_step = lowered.plan;
  in_step.staleness = Plan::kSynchronous;
  in_step.sync.clear();
  const MemoryUse with = lowered.program.meshes[MeshIndex(0)].memory,
                  without = lower(lowered.graph, in_step).meshes[MeshIndex(0)].memory;
  EXPECT_EQ(with.parameters, without.parameters);
  EXPECT_EQ(with.gradients, without.gradients);
  EXPECT_EQ(with.optimizer, 0);
  EXPECT_GE(with.workspace, 0);
  EXPECT_LT(with.total, without.total);
  const MemoryUse server = lowered.program.servers->memory;
  EXPECT_EQ(server.parameters, 0);
  EXPECT_GE(3 * server.optimizer, without.parameters + without.optimizer);
  EXPECT_EQ(server.total, server.optimizer + server.gradients + server.workspace);
}

TEST(StatesAtServers, AreSharedOutEvenlyByBytes) {
  const Lowered lowered = stale(3, 0);
  const MeshProgram& servers = *lowered.program.servers;
  const std::map<int, std::int64_t> bytes = bytes_of_servers(servers, *exchanges(servers)[0].exchange);
  ASSERT_EQ(bytes.size(), 3u);
  std::int64_t least = bytes.at(0), most = bytes.at(0);
  for (const auto& [server, of_server] : bytes) {
    least = std::min(least, of_server);
    most = std::max(most, of_server);
  }
  EXPECT_LE(most - least, 1 << 16);  // the largest that goes to one server whole
}

TEST(StatesAtServers, AreReadByAllAndWrittenByOne) {
  const Lowered lowered = stale(3, 1);
  const GraphUses uses(lowered.graph);
  for (const StateIndex s : lowered.graph.states.indices()) {
    const State& state = lowered.graph.states[s];
    const bool is_of_updates = is_of_update_alone(uses, state);
    const std::int64_t whole = element_count(value_of(lowered.graph, state.value).type.shape);
    std::int64_t on_devices = 0, copied = 0, at_servers = 0;
    for (int rank = 0; rank < kRanks + 3; ++rank)
      for (const StateTile& tile : state_tiles(lowered.graph, lowered.program, DeviceIndex(rank))) {
        if (tile.state != s) continue;
        EXPECT_EQ(tile.is_copy, rank >= kRanks && !is_of_updates) << state.name;
        (rank < kRanks ? on_devices : tile.is_copy ? copied : at_servers) += element_count(tile.tile.shape);
      }
    EXPECT_EQ(on_devices, is_of_updates ? 0 : kRanks * whole) << state.name;
    EXPECT_EQ(at_servers, is_of_updates ? whole : 0) << state.name;
    EXPECT_EQ(copied, is_of_updates ? 0 : whole) << state.name;
  }
}

// A step is what the device computes and what the busiest interface takes, or the longer of both.
TEST(StatesAtServers, MakeAStepAsLongAsTheBusierOfComputationAndServers) {
  const auto step_s = [](int staleness, std::int64_t* bytes) {
    const Lowered lowered = stale(1, staleness);
    Cluster slow = lowered.plan.cluster;
    slow.between_nodes = {0, 1e6};
    const MeshProgram& mesh = lowered.program.meshes[MeshIndex(0)];
    for (const auto& [server, of_server] : bytes_of_servers(mesh, *exchanges(mesh)[1].exchange))
      *bytes = of_server;
    return simulate(lowered.program, CostModel(slow)).step_s;
  };
  std::int64_t bytes = 0;
  const double in_turn_s = step_s(0, &bytes), way_s = kRanks * static_cast<double>(bytes) / 1e6;
  EXPECT_GT(in_turn_s, way_s);
  EXPECT_LT(in_turn_s, 1.1 * way_s);  // what is computed is next to nothing beside such a link
  EXPECT_NEAR(step_s(1, &bytes), way_s, 1e-3 * way_s);
  EXPECT_NEAR(step_s(4, &bytes), way_s, 1e-3 * way_s);
}

}  // namespace
}  // namespace alpa
