#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "libalpa/base/infinity.h"
#include "libalpa/program/order/simulate.h"
#include "tests/support/device_transfers.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// Equal stages, as many on each mesh, that hand a small buffer on; the operator on the large one is what
/// takes time.
Program pipeline(int meshes, int stages_per_mesh, int micro_batches, const std::string& name) {
  const PipelineSchedule& schedule = find_schedule(name);
  const int stages = meshes * stages_per_mesh;
  const std::vector<int> mesh_of = meshes_of_stages(schedule, stages, stages_per_mesh);
  Program program;
  program.micro_batches = micro_batches;
  program.devices_per_node = meshes;
  const TensorType type{DType::f32, {1}};
  std::map<std::pair<int, int>, int> transfers;  // of two stages on different meshes
  for (int s = 0; s + 1 < stages; ++s)
    for (const auto& [from, to] : {std::pair(s, s + 1), std::pair(s + 1, s)}) {
      if (mesh_of[from] == mesh_of[to]) continue;
      transfers[{from, to}] = static_cast<int>(program.transfers.size());
      program.transfers.push_back(
          device_transfer(type, DeviceIndex(mesh_of[from]), DeviceIndex(mesh_of[to])));
      program.transfers.back().from_stage = StageIndex(from);
      program.transfers.back().to_stage = StageIndex(to);
    }
  const auto orders = mesh_orders(schedule, mesh_of, micro_batches);
  for (int m = 0; m < meshes; ++m) {
    MeshProgram mesh;
    mesh.mesh = {DeviceIndex(m), {}};
    Buffer large;
    large.tile = {DType::f32, {1 << 20}};
    mesh.buffers = {large, {}};
    mesh.buffers[1_b].tile = type;
    const Compute work{0_n, &op_catalog().find("gelu"), {}, {0_b}, {0_b}, {}};
    const auto segment = [&](const StageRun& run) {
      const auto is_it = [&](const Segment& of) { return of.kind == run.kind && of.stage == run.stage; };
      const auto found = std::ranges::find_if(mesh.segments, is_it);
      if (found != mesh.segments.end()) return static_cast<int>(found - mesh.segments.begin());
      std::vector<Instruction>& of =
          mesh.segments.emplace_back(Segment{run.stage, run.kind, {}}).instructions;
      const int step = run.kind == SegmentKind::forward            ? 1
                       : run.kind == SegmentKind::backward_weights ? 0
                                                                   : -1;
      if (const auto from = transfers.find({run.stage - step, run.stage}); from != transfers.end())
        of.push_back({Receive{from->second, 1_b}});
      of.push_back({work});
      if (run.kind == SegmentKind::backward) of.push_back({work});
      if (const auto to = transfers.find({run.stage, run.stage + step}); to != transfers.end())
        of.push_back({Send{to->second, 1_b, 1_b}});
      return static_cast<int>(std::ssize(mesh.segments)) - 1;
    };
    for (const StageRun& run : orders[m]) {
      const int of = segment(run);
      mesh.schedule.push_back({of, run.micro_batch});
    }
    program.meshes.push_back(mesh);
  }
  return program;
}

/// When a mesh begins its first run and ends its last, in times of a forward.
struct Busy {
  double first = 0, last = 0;
};
Busy busy(const Timeline& timeline, MeshIndex mesh, double forward_s) {
  Busy busy{infinity, 0};
  for (const TimelineRow& row : timeline.rows) {
    if (row.mesh != mesh || row.kind != TimeKind::compute) continue;
    busy.first = std::min(busy.first, row.start_s / forward_s);
    busy.last = std::max(busy.last, (row.start_s + row.duration_s) / forward_s);
  }
  return busy;
}

class Bubble : public testing::Test {
 protected:
  static Cluster without_latency() {
    Cluster cluster = small_cluster(8);
    cluster.within_node = {0, 1e30};
    cluster.launch_s = 0;
    return cluster;
  }

  // Messages of four bytes take next to nothing, not nothing.
  static void expect(double found, double expected, const std::string& schedule) {
    EXPECT_NEAR(found, expected, 1e-5 * (1 + expected)) << schedule;
  }

  const CostModel costs_{without_latency()};
  const double forward_s_ = simulate(pipeline(1, 1, 1, "1f1b"), costs_).step_s / 3;
};

// With equal stages, F = B = W and messages that take nothing: GPipe (NeurIPS'19) 2.1, PipeDream-2BW
// (ICML'21) 2, MLSys'23 section 4: every stage waits (S - 1) (F + B + W); Zero Bubble (ICLR'24) table 1: (S -
// 1) (F + B - W) under H1, and nothing between its first run and its last under H2.
TEST_F(Bubble, OfStagesWithMeshesOfTheirOwnIsThatOfTheTextbook) {
  for (const std::string& schedule : schedule_names(1))
    for (const int stages : {1, 2, 4})
      for (const int micro_batches : {2 * stages, 4 * stages}) {
        const Timeline timeline = simulate(pipeline(stages, 1, micro_batches, schedule), costs_, true);
        const bool is_h1 = schedule == "split-1f1b", is_h2 = schedule == "zero-bubble";
        const double work = 3 * micro_batches, step = timeline.step_s / forward_s_;
        expect(step, work + (is_h1 || is_h2 ? 1 : 3) * (stages - 1), schedule);
        for (const MeshIndex m : timeline.meshes.indices()) {
          expect(timeline.meshes[m].idle_s / forward_s_, step - work, schedule);
          const Busy of = busy(timeline, m, forward_s_);
          if (is_h2) expect(of.last - of.first, work, schedule);
        }
      }
}

// Megatron-LM (SC'21) 2.2.1: (p - 1) (F + B + W) of one of a mesh's stages; Zero Bubble (ICLR'24) section 6:
// nothing between a mesh's first run and its last under ZB-V; Controllable Memory (NeurIPS'24): p / 2 and 2 p
// / 3 micro-batches at most, of 6 units of time each, under V-Half and V-Min.
TEST_F(Bubble, OfStagesThatShareMeshesIsThatOfTheTextbook) {
  for (const int meshes : {1, 2, 4, 6})
    for (const int per_mesh : {2, 4})
      for (const std::string& schedule : schedule_names(per_mesh)) {
        const int micro_batches = 4 * meshes;
        const Timeline timeline = simulate(pipeline(meshes, per_mesh, micro_batches, schedule), costs_, true);
        const double work = 3 * per_mesh * micro_batches, bubble = timeline.step_s / forward_s_ - work;
        if (schedule == "interleaved") expect(work + bubble, work + 3 * (meshes - 1), schedule);
        if (schedule == "zero-bubble-v")
          for (const MeshIndex m : timeline.meshes.indices()) {
            const Busy of = busy(timeline, m, forward_s_);
            expect(of.last - of.first, work, schedule);
          }
        const int most = schedule == "v-half" ? 3 * meshes : schedule == "v-min" ? 4 * meshes : 1 << 20;
        EXPECT_LE(bubble, most + 1e-3) << schedule;
      }
}

}  // namespace
}  // namespace alpa
