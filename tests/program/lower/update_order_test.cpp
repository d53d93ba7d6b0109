#include <gmock/gmock.h>

#include "libalpa/base/error.h"
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

/// Two devices that split samples.
Lowered on_two_devices(UpdateOrder updates) {
  PlannerOptions options;
  options.updates = update_order_name(updates);
  options.pin = parse_pin("micro_batches = 2\n[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\n", "pin");
  Lowered lowered;
  PlanningModel model = small_model();
  model.graph = [](std::int64_t samples) {
    return training_graph(tiny_gpt_forward(samples), op_catalog(), {.gradient_clip = 0});
  };
  lowered.plan = plan_quietly(model, small_cluster(2), options);
  lowered.graph = model.graph(4);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

TEST(Updates, InTheNextForwardComeBeforeTheirStatesAreUsed) {
  const Lowered lowered = on_two_devices(UpdateOrder::next_forward);
  EXPECT_TRUE(lowered.program.defers_updates);
  verify(lowered.program);
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  const std::vector<Instruction>& forward = segment_of_kind(mesh, SegmentKind::forward).instructions;
  std::set<BufferIndex> read, updated;
  int first_update = -1, first_other = -1;
  for (int i = 0; i < static_cast<int>(forward.size()); ++i) {
    const auto* compute = std::get_if<Compute>(&forward[static_cast<std::size_t>(i)].body);
    if (!compute) continue;
    if (compute->op->name == "adamw") {
      EXPECT_EQ(forward[static_cast<std::size_t>(i)].when, When::of_step_before);
      for (const BufferIndex b : compute->results) {
        EXPECT_FALSE(read.contains(b)) << mesh.buffers[b].name;
        updated.insert(b);
      }
      if (first_update < 0) first_update = i;
    } else if (forward[static_cast<std::size_t>(i)].when == When::every_micro_batch) {
      read.insert(compute->operands.begin(), compute->operands.end());
      first_other = i;  // in the end, the last one
    }
  }
  EXPECT_LT(first_update, first_other);
  for (const StateIndex s : lowered.graph.states.indices())
    EXPECT_TRUE(updated.contains(mesh.state_buffer[s])) << lowered.graph.states[s].name;
  for (const Instruction& left : segment_of_kind(mesh, SegmentKind::update).instructions)
    EXPECT_NE(mesh.lanes[static_cast<std::size_t>(left.lane)].kind, LaneKind::compute);
}

TEST(Updates, InTheNextForwardWaitForTheSumsOfTheStepBefore) {
  Lowered lowered = three_layers_in_next_forward("[[stage]]\nlayers = 3\nmesh = [2]\naxes = [\"data\"]\n",
                                                 small_cluster(2), Overlap::all);
  const std::vector<Dependences> waits = dependences(lowered.program);
  verify(lowered.program, waits);
  const int update = static_cast<int>(lowered.program.meshes[0_m].segments.size()) - 1;
  std::vector<Dependences> without = waits;
  for (auto& of_instruction : without[0][0])
    std::erase_if(of_instruction, [&](const Dependence& wait) { return wait.segment == update; });
  EXPECT_THAT([&] { verify(lowered.program, without); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("may still use it")));
  lowered.program.defers_updates = false;
  EXPECT_THAT([&] { verify(lowered.program, waits); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("of the step before is out of place")));
}

TEST(Updates, InTheNextForwardTakeAsLongInTurnAsAtTheEnd) {
  const CostModel costs(small_cluster(2));
  const double at_end = simulate(on_two_devices(UpdateOrder::after_norm).program, costs).step_s,
               next = simulate(on_two_devices(UpdateOrder::next_forward).program, costs).step_s;
  EXPECT_NEAR(next, at_end, 1e-12 * at_end);
}

TEST(Updates, InTheNextForwardAreInNoPlanThatSendsSumsToOtherMeshes) {
  EXPECT_EQ(four_stages_with({.gradient_clip = 0}, "next-forward").plan,
            four_stages_with({.gradient_clip = 0}).plan)
      << "whose embedding is on the first and the last stage";
}

}  // namespace
}  // namespace alpa
