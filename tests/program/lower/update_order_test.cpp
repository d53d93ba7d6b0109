#include <gmock/gmock.h>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

Lowered four_stages_with(const TrainingOptions& training) {
  return four_stages_of(
      [training](std::int64_t samples) {
        return training_graph(tiny_gpt_forward(samples), op_catalog(), training);
      },
      "1f1b");
}

/// What each instruction of a mesh's update is: "norm" (a sum over all), "update" or other things.
std::vector<std::string> updates_and_norms(const Lowered& lowered, MeshIndex mesh) {
  std::vector<std::string> order;
  const Segment& update = segment_of_kind(lowered.program.meshes[mesh], SegmentKind::update);
  for (const Instruction& instruction : update.instructions) {
    const auto* compute = std::get_if<Compute>(&instruction.body);
    std::string what = std::holds_alternative<GlobalSum>(instruction.body) ? "norm"
                       : compute && compute->op->name == "adamw"           ? "update"
                                                                           : "";
    if (!what.empty() && (order.empty() || order.back() != what)) order.push_back(std::move(what));
  }
  return order;
}

TEST(Updates, WaitForTheNormWhereTheyClipByIt) {
  const Lowered lowered = four_stages_with({.gradient_clip = 1});
  for (const MeshIndex mesh : lowered.program.meshes.indices())
    EXPECT_THAT(updates_and_norms(lowered, mesh), testing::ElementsAre("norm", "update"));
}

TEST(Updates, DoNotWaitForTheNormWhereTheyHaveNoUseForIt) {
  const Lowered lowered = four_stages_with({.gradient_clip = 0});
  verify(lowered.program);
  for (const MeshIndex mesh : lowered.program.meshes.indices())
    EXPECT_THAT(updates_and_norms(lowered, mesh), testing::ElementsAre("update", "norm"));

  // The last stage is done first, and has its update while others are at their last backwards.
  const CostModel costs(small_cluster(4));
  const Timeline timeline = simulate(lowered.program, costs, true);
  double first_update_s = timeline.step_s, last_backward_s = 0;
  for (const TimelineRow& row : timeline.rows) {
    const Segment& segment = lowered.program.meshes[row.mesh].segments[static_cast<std::size_t>(row.segment)];
    if (row.kind != TimeKind::compute) continue;
    const Instruction& instruction = segment.instructions[static_cast<std::size_t>(row.instruction)];
    const auto* compute = std::get_if<Compute>(&instruction.body);
    if (row.mesh == 3_m && compute && compute->op->name == "adamw")
      first_update_s = std::min(first_update_s, row.start_s);
    if (row.mesh == 0_m && segment.kind == SegmentKind::backward)
      last_backward_s = std::max(last_backward_s, row.start_s);
  }
  EXPECT_LT(first_update_s, last_backward_s);
}

}  // namespace
}  // namespace alpa
