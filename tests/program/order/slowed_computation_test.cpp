#include "libalpa/program/order/slowed_computation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "libalpa/program/order/simulate.h"
#include "tests/support/device_transfers.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// `pairs` pairs of meshes of one device each, in order: those of the first half send a message of `values`
/// values each, those of the second receive one. All of them copy `computed` values meanwhile.
Program messages_beside_copies(int pairs, std::int64_t values, std::int64_t computed) {
  Program program;
  program.devices_per_node = pairs;
  program.overlap = Overlap::transfers;
  const TensorType message{DType::f32, {values}};
  for (int m = 0; m < 2 * pairs; ++m) {
    const bool sends = m < pairs;
    MeshProgram mesh;
    mesh.mesh = {DeviceIndex(m), {}};
    mesh.lanes.push_back({sends ? LaneKind::send : LaneKind::receive, -1, StageIndex(m % pairs),
                          StageIndex(pairs + m % pairs)});
    mesh.buffers.resize(4);
    mesh.buffers[0_b].tile = mesh.buffers[1_b].tile = message;
    mesh.buffers[2_b].tile = mesh.buffers[3_b].tile = {DType::f32, {computed}};
    mesh.segments = {{StageIndex(m), SegmentKind::forward, {{Copy{2_b, 3_b}}}}};
    if (sends)
      mesh.segments[0].instructions.push_back({Send{m, 0_b, 1_b}, 1});
    else
      mesh.segments[0].instructions.push_back({Receive{m - pairs, 1_b}, 1});
    mesh.schedule = {{0, 0}};
    program.meshes.push_back(mesh);
  }
  for (int pair = 0; pair < pairs; ++pair)
    program.transfers.push_back(device_transfer(message, DeviceIndex(pair), DeviceIndex(pairs + pair)));
  return program;
}

Cluster slowed_cluster(double slowdown) {
  Cluster cluster = small_cluster(2);
  cluster.overlap_slowdown = slowdown;
  return cluster;
}

/// Of an instruction of the only segment.
double alone_s(const Program& program, MeshIndex m, std::size_t instruction, const CostModel& costs) {
  const MeshProgram& mesh = program.meshes[m];
  return instruction_seconds(program, mesh, mesh.segments[0], costs)[instruction];
}

/// What the copy of a mesh takes.
double copy_s(const Timeline& timeline, MeshIndex m) {
  for (const TimelineRow& row : timeline.rows)
    if (row.mesh == m && row.kind == TimeKind::compute) return row.duration_s;
  ADD_FAILURE() << "mesh " << m << " copies nothing";
  return 0;
}

// The receiver computes alone while the message is packed, at half the rate while it comes, and alone again;
// the sender at half the rate from the beginning, until the message has come.
TEST(SlowedComputation, TakesLongerWhileItsMeshCommunicatesAndNoLonger) {
  constexpr double slowdown = 2;
  for (const int nodes : {1, 2}) {  // a node's interface is one that transfers may have to share
    Cluster cluster = slowed_cluster(slowdown);
    cluster.nodes = nodes;
    cluster.devices_per_node = nodes == 1 ? 2 : 1;
    cluster.within_node = cluster.between_nodes = {0, 4e9};
    const CostModel costs(cluster);
    Program program = messages_beside_copies(1, 1 << 20, 1 << 22);
    program.devices_per_node = cluster.devices_per_node;
    const double packing = alone_s(program, 0_m, 1, costs), transfer = alone_s(program, 1_m, 1, costs),
                 copy = alone_s(program, 0_m, 0, costs);
    ASSERT_GT(copy, packing + transfer);
    const Timeline timeline = simulate(program, costs, true);
    EXPECT_NEAR(copy_s(timeline, 0_m), copy + (packing + transfer) / 2, 1e-15);
    EXPECT_NEAR(copy_s(timeline, 1_m), copy + transfer / 2, 1e-15);
    EXPECT_NEAR(timeline.step_s, copy_s(timeline, 0_m), 1e-15);
  }
}

TEST(SlowedComputation, EndsBesideATransferThatGoesOn) {
  constexpr double slowdown = 3;
  Cluster cluster = slowed_cluster(slowdown);
  cluster.within_node = {0, 1e9};
  const CostModel costs(cluster);
  const Program program = messages_beside_copies(1, 1 << 20, 1 << 20);
  const double packing = alone_s(program, 0_m, 1, costs), transfer = alone_s(program, 1_m, 1, costs),
               copy = alone_s(program, 0_m, 0, costs);
  ASSERT_EQ(copy, packing);
  ASSERT_GT(packing + transfer, slowdown * copy);
  const Timeline timeline = simulate(program, costs, true);
  EXPECT_NEAR(copy_s(timeline, 0_m), slowdown * copy, 1e-15);
  EXPECT_EQ(copy_s(timeline, 1_m), copy);  // the message comes when it is done
  EXPECT_NEAR(timeline.step_s, packing + transfer, 1e-15);
}

// Two messages over one interface take twice as long each, and computation is slowed down for as long.
TEST(SlowedComputation, IsSlowedDownForAsLongAsATransferThatSharesTheNetworkLasts) {
  constexpr double slowdown = 1.5;
  Cluster cluster = slowed_cluster(slowdown);
  cluster.nodes = 2;
  cluster.between_nodes = {0, 4e9};
  const CostModel costs(cluster);
  const Program program = messages_beside_copies(2, 1 << 20, 1 << 23);
  const double transfer = alone_s(program, 2_m, 1, costs), copy = alone_s(program, 2_m, 0, costs);
  const Timeline timeline = simulate(program, costs, true);
  const double beside = 2 * transfer;
  for (const MeshIndex receiver : {2_m, 3_m})
    EXPECT_NEAR(copy_s(timeline, receiver), copy - beside / slowdown + beside, 1e-15);
}

TEST(SlowedComputation, CountsAsComputationForAllOfItsTime) {
  const Lowered lowered = two_stages_of_two(4);
  Cluster cluster = slowed_cluster(1.7);
  cluster.devices_per_node = 4;
  cluster.within_node.bytes_per_s = 1e7;
  const Timeline timeline = simulate(lowered.program, CostModel(cluster), Overlap::all, true);
  for (const MeshIndex m : lowered.program.meshes.indices()) {
    const MeshTime& time = timeline.meshes[m];
    EXPECT_NEAR(time.compute_s + time.collective_s + time.transfer_s + time.idle_s, timeline.step_s,
                1e-9 * timeline.step_s);
    double computed = 0;
    for (const TimelineRow& row : timeline.rows)
      if (row.mesh == m && lowered.program.meshes[m].lanes[row.lane].kind == LaneKind::compute &&
          row.kind == TimeKind::compute)
        computed += row.duration_s;
    EXPECT_GE(time.compute_s, computed * (1 - 1e-9));
  }
}

/// Of all rows, to the last bit.
std::vector<std::array<double, 2>> times(const Timeline& timeline) {
  std::vector<std::array<double, 2>> all;
  for (const TimelineRow& row : timeline.rows) all.push_back({row.start_s, row.duration_s});
  return all;
}

TEST(SlowedComputation, LeavesPlansThatOverlapNothingAsTheyAre) {
  const Lowered lowered = two_stages_of_two(4);
  Cluster usual = small_cluster(4), slow = usual;
  slow.overlap_slowdown = 2;
  const Timeline one = simulate(lowered.program, CostModel(usual), Overlap::none, true),
                 other = simulate(lowered.program, CostModel(slow), Overlap::none, true);
  EXPECT_EQ(times(one), times(other));
  EXPECT_EQ(one.step_s, other.step_s);
  EXPECT_LT(simulate(lowered.program, CostModel(usual), Overlap::all).step_s,
            simulate(lowered.program, CostModel(slow), Overlap::all).step_s);
}

TEST(SlowedComputation, IsNoneWhereTheFigureIsOne) {
  for (const std::string& schedule : schedule_names(1)) {
    const Lowered lowered = two_stages_of_two(4, schedule);
    const CostModel costs(small_cluster(4));
    for (const auto& [name, overlap, described] : overlap_words())
      for (const TimelineRow& row : simulate(lowered.program, costs, overlap, true).rows) {
        const MeshProgram& mesh = lowered.program.meshes[row.mesh];
        EXPECT_EQ(row.duration_s, instruction_seconds(lowered.program, mesh, mesh.segments[row.segment],
                                                      costs)[row.instruction])
            << schedule << " " << name;
      }
  }
}

TEST(SlowedComputation, IsThatOfTheDevicesThatAMeshLiesOn) {
  Cluster fast = slowed_cluster(1), slow = slowed_cluster(2);
  fast.devices_per_node = slow.devices_per_node = 1;
  fast.name = "fast";
  slow.name = "slow";
  const CostModel costs(cluster_of_parts("both", {fast, slow}));
  const Program program = messages_beside_copies(1, 1 << 20, 1 << 22);
  const double copy = alone_s(program, 0_m, 0, costs);
  const Timeline timeline = simulate(program, costs, true);
  EXPECT_EQ(copy_s(timeline, 0_m), copy);
  EXPECT_GT(copy_s(timeline, 1_m), copy);
}

}  // namespace
}  // namespace alpa
