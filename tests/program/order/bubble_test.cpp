#include <gtest/gtest.h>

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/program/order/simulate.h"
#include "tests/support/device_transfers.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// `stages` equal stages that hand a small buffer on; the operator on the large one is what takes time.
Program pipeline(int stages, int micro_batches, const std::string& schedule) {
  Program program;
  program.micro_batches = micro_batches;
  program.devices_per_node = stages;
  const TensorType type{DType::f32, {1}};
  for (int s = 0; s + 1 < stages; ++s)
    for (const auto& [from, to] : {std::pair(s, s + 1), std::pair(s + 1, s)})
      program.transfers.push_back(device_transfer(type, DeviceIndex(from), DeviceIndex(to)));
  for (int s = 0; s < stages; ++s) {
    MeshProgram stage;
    stage.mesh = {DeviceIndex(s), {}};
    Buffer large;
    large.tile = {DType::f32, {1 << 20}};
    stage.buffers = {large, {}};
    stage.buffers[1_b].tile = type;
    const Compute work{0_n, &op_catalog().find("gelu"), {}, {0_b}, {0_b}, {}};
    const auto segment = [&](SegmentKind kind) {
      const auto found = std::ranges::find(stage.segments, kind, &Segment::kind);
      if (found != stage.segments.end()) return static_cast<int>(found - stage.segments.begin());
      std::vector<Instruction>& of =
          stage.segments.emplace_back(Segment{StageIndex(s), kind, {}}).instructions;
      const bool is_forward = kind == SegmentKind::forward,
                 is_weights = kind == SegmentKind::backward_weights;
      if (is_forward && s > 0) of.push_back({Receive{2 * (s - 1), 1_b}});
      if (!is_forward && !is_weights && s + 1 < stages) of.push_back({Receive{2 * s + 1, 1_b}});
      of.push_back({work});
      if (kind == SegmentKind::backward) of.push_back({work});
      if (is_forward && s + 1 < stages) of.push_back({Send{2 * s, 1_b, 1_b}});
      if (!is_forward && !is_weights && s > 0) of.push_back({Send{2 * (s - 1) + 1, 1_b, 1_b}});
      return static_cast<int>(std::ssize(stage.segments)) - 1;
    };
    for (const StageRun& run : find_schedule(schedule).order(StageIndex(s), stages, micro_batches))
      stage.schedule.push_back({segment(run.kind), run.micro_batch});
    program.meshes.push_back(stage);
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

// With equal stages, F = B = W and messages that take nothing: GPipe (NeurIPS'19) 2.1, PipeDream-2BW
// (ICML'21) 2, MLSys'23 section 4: every stage waits (S - 1) (F + B + W); Zero Bubble (ICLR'24) table 1: (S -
// 1) (F + B - W) under H1, and nothing between its first run and its last under H2.
TEST(Simulator, OfEqualStagesHasTheBubbleOfTheTextbook) {
  Cluster cluster = small_cluster(8);
  cluster.within_node = {0, 1e30};
  cluster.launch_s = 0;
  const CostModel costs(cluster);
  const double forward_s = simulate(pipeline(1, 1, "1f1b"), costs).step_s / 3;
  // Messages of four bytes take next to nothing, not nothing.
  const auto expect = [](double found, double expected, const char* schedule) {
    EXPECT_NEAR(found, expected, 1e-5 * (1 + expected)) << schedule;
  };
  for (const PipelineSchedule& schedule : schedules())
    for (const int stages : {1, 2, 4})
      for (const int micro_batches : {2 * stages, 4 * stages}) {
        const Timeline timeline = simulate(pipeline(stages, micro_batches, schedule.name), costs, true);
        const bool is_h1 = std::string(schedule.name) == "split-1f1b",
                   is_h2 = std::string(schedule.name) == "zero-bubble";
        const double work = 3 * micro_batches, step = timeline.step_s / forward_s;
        expect(step, work + (is_h1 || is_h2 ? 1 : 3) * (stages - 1), schedule.name);
        for (const MeshIndex m : timeline.meshes.indices()) {
          expect(timeline.meshes[m].idle_s / forward_s, step - work, schedule.name);
          const Busy of = busy(timeline, m, forward_s);
          if (is_h2) expect(of.last - of.first, work, schedule.name);
        }
      }
}

}  // namespace
}  // namespace alpa
