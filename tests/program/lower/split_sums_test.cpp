// Sums of gradients that end up split over the devices, as ZeRO has them.
#include <gtest/gtest.h>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

Lowered sharded_by_four(const std::string& overlap) {
  return pinned("micro_batches = 2\noverlap = \"" + overlap + R"("
[[stage]]
layers = 4
mesh = [4]
axes = ["data"]
state_sharding = "optimizer"
)");
}

/// From the first reduce-scatter of the update until the last product of the backward is done; negative where
/// none begins before that.
double before_end_of_backward_s(const Lowered& lowered) {
  Cluster slow = small_cluster(4);
  slow.within_node.bytes_per_s = 1e7;
  double first_s = infinity, last_s = 0;
  for (const TimelineRow& row : simulate(lowered.program, CostModel(slow), true).rows) {
    const Segment& segment = lowered.program.meshes[row.mesh].segments[static_cast<std::size_t>(row.segment)];
    const Instruction& instruction = segment.instructions[static_cast<std::size_t>(row.instruction)];
    const auto* convert = std::get_if<Convert>(&instruction.body);
    if (segment.kind == SegmentKind::update && convert &&
        convert->step.kind == ConversionKind::reduce_scatter)
      first_s = std::min(first_s, row.start_s);
    if (segment.kind == SegmentKind::backward && row.kind == TimeKind::compute)
      last_s = std::max(last_s, row.start_s + row.duration_s);
  }
  return last_s - first_s;
}

TEST(SplitSums, GoOnBesideTheBackwardWhereLanesOverlap) {
  const Lowered lowered = sharded_by_four("all");
  verify(lowered.program);
  EXPECT_GT(before_end_of_backward_s(lowered), 0);
}

TEST(SplitSums, ComeAfterTheBackwardWhereTheirMemoryIsNotThere) {
  Lowered lowered = sharded_by_four("all");
  const std::int64_t early = lowered.program.meshes[0_m].memory.total;
  lowered.plan.cluster.memory_bytes = early - 1;
  lowered.program = lower(lowered.graph, lowered.plan);
  verify(lowered.program);
  EXPECT_LT(lowered.program.meshes[0_m].memory.total, early);
  EXPECT_LE(before_end_of_backward_s(lowered), 0);
}

TEST(SplitSums, TakeNoMemoryOfTheirOwnWhereLanesTakeTurns) {
  EXPECT_LT(sharded_by_four("none").program.meshes[0_m].memory.total,
            sharded_by_four("all").program.meshes[0_m].memory.total);
}

}  // namespace
}  // namespace alpa
