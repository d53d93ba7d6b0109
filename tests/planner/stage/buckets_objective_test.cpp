// Where sums of gradients may share collectives, a stage's problem knows what is the least that they take.
#include "libalpa/planner/gradient_buckets.h"
#include "tests/planner/stage/stage_objective.h"

namespace alpa {
namespace {

class BucketsStageObjective : public StageObjective {
 protected:
  BucketsStageObjective() : StageObjective(layers_apart, true) {}

  /// Of program_seconds, what sums of gradients take for bytes that lie between them in their buckets.
  double gap_seconds(const Program& program, std::size_t stage) const {
    const MeshProgram& mesh = program.meshes[MeshIndex(stage)];
    const Segment& update = segment_of_kind(mesh, SegmentKind::update);
    const std::vector<double> seconds = instruction_seconds(program, mesh, update, costs_);
    double sum = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const auto* convert = std::get_if<Convert>(&update.instructions[i].body);
      if (!convert) continue;
      std::int64_t used = 0;
      for (const Buffer& view : mesh.buffers)
        if (view.view_of == convert->from) used += byte_count(view.tile);
      const auto bytes = static_cast<double>(mesh.buffers[convert->from].bytes);
      if (used > 0) sum += seconds[i] * (1 - static_cast<double>(used) / bytes);
    }
    return sum;
  }
};

// Whichever sums share a collective. Where nothing takes time to start, all take what they take together.
TEST_P(BucketsStageObjective, IsTheLeastThatTheProgramTakes) {
  std::mt19937 random(7);
  std::size_t in_buckets = 0;
  for (int draw = 0; draw < 8 && !HasFailure(); ++draw) {
    std::vector<std::vector<int>> choices;
    std::vector<StageSolution> solutions;
    for (const auto& problem : problems_) {
      choices.push_back(random_choice(*problem, random));
      solutions.push_back(problem->solution_of(choices.back()));
    }
    Plan plan = assemble(*planning_, requests_, solutions, "1f1b", costs_.cluster());
    plan.updates = GetParam().updates;
    const SumsForBuckets sums(plan, planning_->uses);
    std::vector<std::vector<GradientSync>> ways{sums.in_soonest_buckets(plan, costs_)};
    for (const Word<BucketSizes>& word : bucket_words())
      if (word.value.parts == BucketSizes::Parts::none) ways.push_back(sums.in_buckets(word.value));
    for (const std::vector<GradientSync>& way : ways) {
      plan.sync = way;
      in_buckets += way.size();
      check_plan(plan, graph_);
      const Program program = lower(graph_, plan);
      verify(program);
      for (std::size_t s = 0; s < choices.size(); ++s) {
        const double least = objective_seconds(s, choices[s], solutions[s]),
                     seconds = program_seconds(program, s);
        EXPECT_LE(least, seconds * (1 + 1e-9));
        if (!GetParam().has_latency) {
          EXPECT_NEAR(least, seconds - gap_seconds(program, s), 1e-9 * seconds);
        }
      }
    }
  }
  EXPECT_GT(in_buckets, 0u);
}

// Of more than two devices a small all-reduce sends more bytes than its share of a large one.
INSTANTIATE_TEST_SUITE_P(
    Tiny, BucketsStageObjective,
    testing::Values(ObjectiveCase{"gpt", {2}, 1, 2, 0}, ObjectiveCase{"gpt", {4}, 1, 2, 0},
                    ObjectiveCase{"gpt", {2, 2}, 2, 4, 2}, ObjectiveCase{"unclipped", {2}, 2, 4, 0},
                    ObjectiveCase{"unet", {2}, 2, 2, 0}, ObjectiveCase{"adafactor", {2, 2}, 1, 2, 0},
                    ObjectiveCase{"bf16_sums", {2}, 2, 4, 0}, ObjectiveCase{"bf16_wire", {4}, 1, 2, 0},
                    before_norm({"gpt", {2, 2}, 1, 2, 0}), without_latency({"gpt", {2}, 2, 4, 0}),
                    without_latency({"gpt", {2, 2}, 1, 2, 0}), without_latency({"llama", {2}, 1, 2, 0}),
                    without_latency({"moe", {2}, 1, 2, 0}), without_latency({"unet", {2}, 2, 2, 0}),
                    without_latency({"adafactor", {2, 2}, 1, 2, 0}),
                    without_latency({"bf16_sums", {2}, 2, 4, 0}),
                    without_latency({"bf16_wire", {2, 2}, 1, 2, 0}),
                    without_latency({"mlp", {2, 2, 2}, 1, 2, 0})),
    case_name);

}  // namespace
}  // namespace alpa
