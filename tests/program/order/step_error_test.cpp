#include "libalpa/program/order/step_error.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "tests/support/index_literals.h"
#include "tests/support/measured_profile.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

constexpr double kRangeOfDeviation = 1.349;  // quartile to quartile of a normal distribution

/// So small that the critical path stays what it is. Every kind has another.
double tiny_spread(const std::string& kind) { return 1e-7 * (1 + static_cast<double>(kind.size() % 7)); }

std::set<std::string> kinds_of(const Program& program) {
  std::set<std::string> kinds;
  for (const MeshProgram& mesh : program.meshes)
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions)
        kinds.insert(cost_kind(program, mesh, instruction));
  return kinds;
}

// Kinds are simulated again, one by one, with all of their measurements longer by a deviation.
TEST(StepError, IsTheRootOfTheSquaresOfWhatEachKindAddsToTheStep) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Lowered lowered = two_stages_of_two(4, schedule);
    Cluster cluster = small_cluster(4);
    const Profile usual = measured_profile(lowered.program, cluster, tiny_spread);
    const CostModel costs(usual);
    const Timeline timeline = simulate(lowered.program, costs, Overlap::none, true);
    double squares = 0;
    for (const std::string& kind : kinds_of(lowered.program)) {
      Profile longer = usual;
      for (auto& [signature, sample] : longer.operators)
        if (cost_kind_of_operator(signature) == kind)
          sample.median_s += sample.sample_spread_s / kRangeOfDeviation;
      for (CollectiveSample& sample : longer.collectives)
        if (cost_kind_of_collective(sample.kind, sample.group.nodes > 1) == kind)
          sample.median_s += sample.sample_spread_s / kRangeOfDeviation;
      const double added = simulate(lowered.program, CostModel(longer)).step_s - timeline.step_s;
      squares += added * added;
    }
    const double error = step_error_s(lowered.program, timeline, costs);
    EXPECT_GT(error, 1e-8 * timeline.step_s);
    EXPECT_NEAR(error, std::sqrt(squares), 1e-5 * error) << schedule;  // differences of nearly equal steps
  }
}

TEST(StepError, GrowsWithTheSpreadAndIsNoneWithoutOne) {
  const Lowered lowered = two_stages_of_two();
  const auto error = [&](double spread) {
    const CostModel costs(
        measured_profile(lowered.program, small_cluster(4), [&](const std::string&) { return spread; }));
    return step_error_s(lowered.program, simulate(lowered.program, costs, Overlap::none, true), costs);
  };
  EXPECT_EQ(error(0), 0);
  EXPECT_GT(error(0.1), 0);
  EXPECT_NEAR(error(0.2), 2 * error(0.1), 1e-12);
  const CostModel estimated(small_cluster(4));
  EXPECT_EQ(
      step_error_s(lowered.program, simulate(lowered.program, estimated, Overlap::none, true), estimated), 0);
}

// Of two profiles each lacks what the other has.
TEST(EstimatedShare, IsThatOfTheOperatorsThatAProfileLacks) {
  const Lowered lowered = two_stages_of_two();
  const Profile whole = measured_profile(lowered.program, small_cluster(4), tiny_spread);
  Profile einsums = whole, others = whole;
  const auto is_einsum = [](const auto& of) { return of.first.starts_with("einsum "); };
  std::erase_if(einsums.operators, [&](const auto& of) { return !is_einsum(of); });
  std::erase_if(others.operators, is_einsum);
  ASSERT_FALSE(einsums.operators.empty());
  const Timeline timeline = simulate(lowered.program, CostModel(whole), Overlap::none, true);
  const auto share = [&](const CostModel& costs) {
    return estimated_share(lowered.program, timeline, costs);
  };
  EXPECT_EQ(share(CostModel(whole)), 0);
  EXPECT_EQ(share(CostModel(small_cluster(4))), 1);
  EXPECT_GT(share(CostModel(einsums)), 0);
  EXPECT_GT(share(CostModel(others)), 0);
  EXPECT_NEAR(share(CostModel(einsums)) + share(CostModel(others)), 1, 1e-12);
}

TEST(CriticalPath, FillsTheStepWithoutAGapAndWithoutRowsThatOverlap) {
  for (const std::string& schedule : schedule_names(1)) {
    const Lowered lowered = two_stages_of_two(4, schedule);
    const Timeline timeline = simulate(lowered.program, CostModel(small_cluster(4)), Overlap::none, true);
    double sum = 0, begins = timeline.step_s;
    for (const std::size_t r : critical_path(timeline.rows)) {
      const TimelineRow& row = timeline.rows[r];
      EXPECT_EQ(row.start_s + row.duration_s, begins) << schedule;
      begins = row.start_s;
      sum += row.duration_s;
    }
    EXPECT_EQ(begins, 0) << schedule;
    EXPECT_NEAR(sum, timeline.step_s, 1e-12 * timeline.step_s) << schedule;
  }
}

TEST(CostKind, NamesOperatorsByTypeAndCollectivesByWhereTheyGo) {
  EXPECT_EQ(cost_kind_of_operator("einsum equation='m k, k n -> m n' f32[8x16] f32[16x32]"), "einsum f32");
  EXPECT_EQ(cost_kind_of_operator("embedding i32[8x16] bf16[16x32]"), "embedding bf16");
  EXPECT_EQ(cost_kind_of_operator("accumulate_rounded f32[8] bf16[8]"), "accumulate_rounded f32");
  EXPECT_EQ(cost_kind_of_collective(CollectiveKind::all_gather, true), "all-gather between nodes");
  const Lowered lowered = two_stages_of_two();
  EXPECT_THAT(kinds_of(lowered.program), testing::IsSupersetOf({"einsum f32", "all-reduce within nodes",
                                                                "transfers within nodes", "copies"}));
}

}  // namespace
}  // namespace alpa
