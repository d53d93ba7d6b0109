// What a stage's problem says of a choice is what the lowered program of that choice takes.
#include "tests/planner/stage/stage_objective.h"

namespace alpa {
namespace {

TEST_P(StageObjective, OfRandomChoicesIsTheTimeOfTheirProgram) {
  std::mt19937 random(7);
  const int draws = GetParam().model == std::string("unet") ? 4 : 14;
  for (int draw = 0; draw < draws && !HasFailure(); ++draw) {
    std::vector<std::vector<int>> choices;
    for (const auto& problem : problems_) choices.push_back(random_choice(*problem, random));
    expect_equal(choices);
  }
}

TEST_P(StageObjective, OfTheSolversChoiceIsTheTimeOfItsProgram) {
  std::vector<std::vector<int>> choices;
  SelectionOptions options;
  options.gap = 0.05;
  options.effort = 1000;
  for (const auto& problem : problems_) {
    choices.push_back(solve_selection(problem->selection(), options).choice);
    choices.back().resize(problem->variables().variables.size());
  }
  expect_equal(choices);
}

// Memory binds: the solver finds rows for what conversions hold where it needs them.
TEST_P(StageObjective, OfAStageThatFitsJustKeepsToTheMemoryThereIs) {
  SelectionOptions options;
  options.gap = 0.05;
  options.effort = 1000;
  StageRequest request = requests_[0];
  const auto bytes = [&](const StageSolution& solution) {
    return solution.resident_bytes + request.in_flight * solution.micro_batch_bytes;
  };
  const StageSolution free = solve_stage(*planning_, request, *mesh_costs_, options);
  ASSERT_TRUE(free.feasible) << free.why_not;
  const std::int64_t limit = bytes(free) * 19 / 20;
  request.reserve_bytes = costs_.cluster().memory_bytes - limit;
  const StageSolution tight = solve_stage(*planning_, request, *mesh_costs_, options);
  if (!tight.feasible) {
    EXPECT_GT(tight.least_memory - request.reserve_bytes, limit);
    return;
  }
  EXPECT_LE(bytes(tight), limit);
  SelectionOptions no_time = options;
  no_time.time_limit_s = 0;
  const StageSolution known = solve_stage(*planning_, request, *mesh_costs_, no_time, &tight);
  EXPECT_TRUE(known.feasible);
  EXPECT_LE(known.step_s, tight.step_s);
  EXPECT_LE(bytes(known), limit);
  if (GetParam().stages > 1) return;  // its neighbours were not solved
  Plan plan = assemble(*planning_, requests_, {tight}, "1f1b", costs_.cluster());
  plan.updates = GetParam().updates;
  EXPECT_EQ(std::ranges::max(live_bytes(lower(graph_, plan).meshes[0_m], true)), bytes(tight));
}

class FoldedStageObjective : public StageObjective {
 protected:
  FoldedStageObjective() : StageObjective(classify_layers) {}
};

// Equal layers share decisions and one stretch of time. What the first or the last of them converts that
// others do not is counted once or as often as there are layers, and what one hands to the next is held a
// little longer.
TEST_P(FoldedStageObjective, IsNearThatOfTheProgram) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 8 && !HasFailure(); ++draw) {
    std::vector<std::vector<int>> choices;
    std::vector<StageSolution> solutions;
    for (const auto& problem : problems_) {
      choices.push_back(random_choice(*problem, random));
      solutions.push_back(problem->solution_of(choices.back()));
    }
    const Plan plan = assemble(*planning_, requests_, solutions, "1f1b", costs_.cluster());
    check_plan(plan, graph_);
    const Program program = lower(graph_, plan);
    for (std::size_t s = 0; s < choices.size(); ++s) {
      const double expected = program_seconds(program, s);
      EXPECT_GE(objective_seconds(s, choices[s], solutions[s]), expected * (1 - 1e-9));
      EXPECT_LE(objective_seconds(s, choices[s], solutions[s]), expected * 1.02);
      const std::vector<std::int64_t> counted = counted_bytes(s, choices[s], false),
                                      live = live_bytes(program.meshes[MeshIndex(s)], false);
      for (const Phase phase : kPhases) {
        const auto p = static_cast<std::size_t>(phase);
        EXPECT_GE(static_cast<double>(counted[p]), 0.99 * static_cast<double>(live[p])) << p;
        EXPECT_LE(static_cast<double>(counted[p]), 1.1 * static_cast<double>(live[p])) << p;
      }
    }
  }
}

constexpr RecomputeForm kSelective = RecomputeForm::selective, kOffload = RecomputeForm::offload;

INSTANTIATE_TEST_SUITE_P(
    Tiny, StageObjective,
    testing::Values(
        ObjectiveCase{"gpt", {}, 1, 2, 0}, ObjectiveCase{"gpt", {2}, 1, 2, 0},
        ObjectiveCase{"gpt", {2}, 1, 2, 2}, ObjectiveCase{"gpt", {4}, 1, 1, 0},
        ObjectiveCase{"gpt", {2}, 2, 4, 0}, ObjectiveCase{"gpt", {2}, 2, 4, 2},
        before_norm({"gpt", {2}, 1, 2, 0}), before_norm({"gpt", {2}, 2, 4, 2}),
        before_norm({"adafactor", {2}, 1, 2, 0}), before_norm({"gpt", {2, 2}, 1, 2, 0}),
        before_norm({"bf16_sums", {4}, 1, 2, 0}), ObjectiveCase{"unclipped", {2}, 1, 2, 0},
        ObjectiveCase{"unclipped", {2}, 2, 4, 2}, ObjectiveCase{"llama", {2}, 1, 2, 0},
        ObjectiveCase{"llama", {2}, 2, 2, 2}, ObjectiveCase{"bert", {2}, 1, 2, 0},
        ObjectiveCase{"bert", {4}, 1, 2, 2}, ObjectiveCase{"moe", {2}, 1, 2, 0},
        ObjectiveCase{"moe", {2}, 2, 2, 2}, ObjectiveCase{"deepseek_moe", {2}, 1, 2, 0},
        ObjectiveCase{"conformer", {2}, 1, 2, 0}, ObjectiveCase{"lstm", {2}, 1, 2, 2},
        ObjectiveCase{"gru", {2}, 1, 2, 0}, ObjectiveCase{"vit", {2}, 1, 2, 0},
        ObjectiveCase{"wrn", {2}, 1, 2, 0}, ObjectiveCase{"wrn", {2}, 2, 2, 2},
        ObjectiveCase{"image_mlp", {2}, 1, 2, 0}, ObjectiveCase{"mlp", {2, 2}, 1, 2, 2},
        ObjectiveCase{"gpt", {2, 2}, 1, 2, 0}, ObjectiveCase{"unet", {2}, 1, 2, 0},
        ObjectiveCase{"unet", {2}, 2, 2, 0}, ObjectiveCase{"unet", {2}, 3, 3, 2},
        ObjectiveCase{"frozen", {2}, 1, 2, 0}, ObjectiveCase{"frozen", {4}, 1, 2, 2},
        ObjectiveCase{"adafactor", {2}, 1, 2, 0}, ObjectiveCase{"adafactor", {2, 2}, 1, 2, 2},
        ObjectiveCase{"adafactor", {2}, 2, 4, 0}, ObjectiveCase{"bf16_sums", {2}, 2, 4, 0},
        ObjectiveCase{"bf16_wire", {2}, 1, 2, 0}, ObjectiveCase{"bf16_wire", {2, 2}, 2, 4, 0},
        ObjectiveCase{"powersgd", {2}, 1, 2, 0}, ObjectiveCase{"powersgd", {2, 2}, 2, 4, 2},
        ObjectiveCase{
            .model = "powersgd", .mesh = {4}, .stages = 1, .micro_batches = 2, .overlap = Overlap::all},
        before_norm({"powersgd", {2}, 1, 2, 0}), offloading({"powersgd", {2}, 1, 2, 0}),
        ObjectiveCase{"delayed", {2}, 1, 2, 0}, ObjectiveCase{"delayed", {2, 2}, 2, 4, 2},
        ObjectiveCase{.model = "gpt", .mesh = {4}, .stages = 1, .micro_batches = 2, .servers = 2},
        ObjectiveCase{.model = "bf16_wire", .mesh = {4}, .stages = 1, .micro_batches = 1, .servers = 4},
        ObjectiveCase{"sparse", {2}, 1, 2, 0}, ObjectiveCase{"sparse", {4}, 2, 4, 2},
        ObjectiveCase{"sparse", {2, 2}, 1, 2, 0}, before_norm({"delayed", {2}, 1, 2, 0}),
        offloading({"delayed", {2}, 1, 2, 0}), before_norm({"bf16_wire", {4}, 1, 2, 0}),
        ObjectiveCase{"gpt", {2}, 2, 4, 1}, ObjectiveCase{"moe", {2}, 1, 2, 1},
        ObjectiveCase{"unet", {2}, 2, 2, 1}, ObjectiveCase{"wrn", {2}, 1, 2, 1},
        ObjectiveCase{"llama", {2, 2}, 1, 2, 1}, ObjectiveCase{"gpt", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"gpt", {2, 2}, 2, 4, 1, kSelective}, ObjectiveCase{"llama", {2}, 2, 2, 2, kSelective},
        ObjectiveCase{"moe", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"deepseek_moe", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"conformer", {2}, 1, 2, 2, kSelective}, ObjectiveCase{"lstm", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"wrn", {2}, 2, 2, 2, kSelective}, ObjectiveCase{"unet", {2}, 3, 3, 2, kSelective},
        ObjectiveCase{"unet", {2}, 2, 2, 1, kSelective}, ObjectiveCase{"mlp", {2, 2, 2}, 1, 2, 2},
        ObjectiveCase{"moe", {2, 2, 2}, 1, 1, 0},
        ObjectiveCase{.model = "gpt", .mesh = {2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "gpt", .mesh = {2, 2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "bf16_sums", .mesh = {2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "gpt", .mesh = {2}, .stages = 2, .micro_batches = 4, .overlap = Overlap::all},
        ObjectiveCase{
            .model = "unet", .mesh = {2}, .stages = 2, .micro_batches = 2, .overlap = Overlap::transfers},
        offloading({"gpt", {2}, 1, 2, 0}), offloading({"gpt", {2, 2}, 2, 4, 2}),
        offloading({"llama", {2}, 1, 2, 0}), offloading({"adafactor", {2}, 1, 2, 0}),
        offloading({"adafactor", {2, 2}, 1, 2, 2}), offloading({"bf16_sums", {2}, 2, 4, 0}),
        offloading({"wrn", {2}, 1, 2, 1}), offloading({"unclipped", {2}, 1, 2, 0}),
        ObjectiveCase{"gpt", {}, 1, 2, 2, kOffload}, ObjectiveCase{"gpt", {2}, 1, 2, 2, kOffload},
        ObjectiveCase{"gpt", {2}, 2, 4, 2, kOffload}, ObjectiveCase{"gpt", {2}, 2, 4, 1, kOffload},
        ObjectiveCase{"gpt", {2, 2}, 1, 2, 2, kOffload}, ObjectiveCase{"llama", {2}, 2, 2, 2, kOffload},
        ObjectiveCase{"moe", {2}, 1, 2, 2, kOffload}, ObjectiveCase{"deepseek_moe", {2}, 1, 2, 1, kOffload},
        ObjectiveCase{"conformer", {2}, 1, 2, 2, kOffload}, ObjectiveCase{"lstm", {2}, 1, 2, 2, kOffload},
        ObjectiveCase{"vit", {2}, 1, 2, 2, kOffload}, ObjectiveCase{"wrn", {2}, 2, 2, 2, kOffload},
        ObjectiveCase{"wrn", {2}, 1, 2, 1, kOffload}, ObjectiveCase{"unet", {2}, 3, 3, 2, kOffload},
        ObjectiveCase{"unet", {2}, 1, 2, 1, kOffload}, ObjectiveCase{"mlp", {2, 2}, 1, 2, 2, kOffload},
        ObjectiveCase{"bf16_sums", {2}, 2, 4, 2, kOffload}, offloading({"gpt", {2}, 1, 2, 2, kOffload}),
        offloading_parameters({"gpt", {2}, 1, 2, 0}), offloading_parameters({"gpt", {2, 2}, 1, 2, 2}),
        offloading_parameters({"gpt", {2}, 2, 4, 1}), offloading_parameters({"llama", {2}, 1, 2, 0}),
        offloading_parameters({"adafactor", {2}, 1, 2, 0}),
        offloading_parameters({"bf16_sums", {2}, 2, 4, 0}), offloading_parameters({"wrn", {2}, 1, 2, 1}),
        offloading_parameters({"moe", {2}, 1, 2, 0}), offloading_parameters({"lstm", {2}, 1, 2, 2}),
        offloading_parameters({"gpt", {2}, 1, 2, 2, kOffload}),
        offloading_parameters({"unet", {2}, 3, 3, 0})),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Tiny, FoldedStageObjective,
    testing::Values(ObjectiveCase{"gpt", {2}, 1, 2, 0}, ObjectiveCase{"gpt", {2}, 1, 2, 2},
                    ObjectiveCase{"gpt", {2}, 2, 4, 2}, ObjectiveCase{"llama", {2}, 1, 2, 0},
                    ObjectiveCase{"moe", {2}, 1, 2, 0}, ObjectiveCase{"conformer", {2}, 1, 2, 0},
                    ObjectiveCase{"vit", {2}, 1, 2, 0}, ObjectiveCase{"wrn", {2}, 2, 2, 2},
                    ObjectiveCase{"mlp", {2, 2}, 1, 2, 2}, ObjectiveCase{"gpt", {2}, 1, 2, 1},
                    ObjectiveCase{"gpt", {2}, 2, 4, 2, kSelective},
                    ObjectiveCase{"wrn", {2}, 2, 2, 2, kSelective}, ObjectiveCase{"gpt", {2, 2, 2}, 1, 2, 1},
                    offloading({"gpt", {2}, 1, 2, 0}), offloading({"llama", {2}, 1, 2, 0}),
                    ObjectiveCase{"gpt", {2}, 1, 2, 1, kOffload},
                    ObjectiveCase{"gpt", {2}, 2, 4, 2, kOffload},
                    ObjectiveCase{"wrn", {2}, 2, 2, 2, kOffload},
                    offloading_parameters({"gpt", {2}, 1, 2, 0})),
    case_name);

}  // namespace
}  // namespace alpa
