#include <gmock/gmock.h>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

Lowered four_stages_with(const TrainingOptions& training, const std::string& updates = "after-norm") {
  PlannerOptions options;
  options.updates = updates;
  return four_stages_of(
      [training](std::int64_t samples) {
        return training_graph(tiny_gpt_forward(samples), op_catalog(), training);
      },
      "1f1b", options);
}

/// What the instructions of a mesh's update are: "norm" (a sum over all), "update", "copy" or other things;
/// "... again" where the norm has to bind for that.
std::vector<std::string> updates_and_norms(const Lowered& lowered, MeshIndex mesh) {
  std::vector<std::string> order;
  const Segment& update = segment_of_kind(lowered.program.meshes[mesh], SegmentKind::update);
  for (const Instruction& instruction : update.instructions) {
    const auto* compute = std::get_if<Compute>(&instruction.body);
    std::string what = std::holds_alternative<GlobalSum>(instruction.body) ? "norm"
                       : compute && compute->op->name == "adamw"           ? "update"
                       : std::holds_alternative<Copy>(instruction.body)    ? "copy"
                                                                           : "";
    if (!what.empty() && instruction.when == When::norm_binds) what += " again";
    if (!what.empty() && (order.empty() || order.back() != what)) order.push_back(std::move(what));
  }
  return order;
}

const Instruction& instruction_of(const Lowered& lowered, const TimelineRow& row) {
  const Segment& segment = lowered.program.meshes[row.mesh].segments[static_cast<std::size_t>(row.segment)];
  return segment.instructions[static_cast<std::size_t>(row.instruction)];
}

/// It is done first, and has its update while others are at their last backwards.
bool last_stage_updates_during_backwards(const Lowered& lowered) {
  const CostModel costs(small_cluster(4));
  const Timeline timeline = simulate(lowered.program, costs, true);
  double first_update_s = timeline.step_s, last_backward_s = 0;
  for (const TimelineRow& row : timeline.rows) {
    const auto* compute = std::get_if<Compute>(&instruction_of(lowered, row).body);
    if (!compute) continue;
    const Segment& segment = lowered.program.meshes[row.mesh].segments[static_cast<std::size_t>(row.segment)];
    if (row.mesh == 3_m && compute->op->name == "adamw")
      first_update_s = std::min(first_update_s, row.start_s);
    if (row.mesh == 0_m && segment.kind == SegmentKind::backward)
      last_backward_s = std::max(last_backward_s, row.start_s);
  }
  return first_update_s < last_backward_s;
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

  EXPECT_TRUE(last_stage_updates_during_backwards(lowered));
}

TEST(Updates, BeforeTheNormAreMadeAgainFromCopiesWhereItBinds) {
  const Lowered lowered = four_stages_with({.gradient_clip = 1}, "before-norm");
  EXPECT_TRUE(lowered.program.corrects_updates);
  verify(lowered.program);
  for (const MeshIndex mesh : lowered.program.meshes.indices())
    EXPECT_THAT(updates_and_norms(lowered, mesh),
                testing::ElementsAre("copy", "update", "norm", "copy again", "update again"));
  EXPECT_TRUE(last_stage_updates_during_backwards(lowered));
}

TEST(Updates, BeforeTheNormTakeMemoryForCopiesOfAllThatTheyUpdate) {
  const Lowered after = four_stages_with({.gradient_clip = 1}),
                before = four_stages_with({.gradient_clip = 1}, "before-norm");
  for (const MeshIndex m : after.program.meshes.indices()) {
    const MemoryUse& memory = before.program.meshes[m].memory;
    EXPECT_GE(memory.workspace, memory.parameters + memory.optimizer) << m;
    EXPECT_GE(memory.total, after.program.meshes[m].memory.total) << m;
  }
}

TEST(Updates, AreMadeAgainInNoStepThatIsPredicted) {
  const Lowered lowered = four_stages_with({.gradient_clip = 1}, "before-norm");
  const CostModel costs(small_cluster(4));
  for (const TimelineRow& row : simulate(lowered.program, costs, true).rows)
    EXPECT_NE(instruction_of(lowered, row).when, When::norm_binds);
}

TEST(Updates, OfModelsThatNeitherClipNorAreF16NeedNoCopies) {
  const Lowered lowered = four_stages_with({.gradient_clip = 0}, "before-norm");
  EXPECT_FALSE(lowered.program.corrects_updates);
  EXPECT_EQ(lowered.plan, four_stages_with({.gradient_clip = 0}).plan);
}

}  // namespace
}  // namespace alpa
