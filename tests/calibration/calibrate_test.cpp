#include "libalpa/calibration/calibrate.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/text.h"
#include "tests/support/index_literals.h"
#include "tests/support/measured_profile.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kRounding = 1e-9;

Lowered by_method(const std::string& method) {
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 2;
  Lowered lowered;
  lowered.plan = plan_quietly(small_model(), small_cluster(4), options);
  lowered.graph = tiny_gpt(lowered.plan.micro_batch_samples);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// A run whose instructions take what a simulation with other costs than the profile's says.
class CalibrationOfARun : public testing::Test {
 protected:
  void SetUp() override { use(two_stages_of_two()); }

  void use(Lowered lowered) {
    lowered_ = std::move(lowered);
    profile_ =
        measured_profile(lowered_.program, lowered_.plan.cluster, [](const std::string&) { return 0.05; });
    truth_ = profile_;
  }

  /// Makes all of a kind slower in the run.
  void slow_down(const std::string& kind, double times) {
    for (auto& [signature, sample] : truth_.operators)
      if (cost_kind_of_operator(signature) == kind) sample.median_s *= times;
    for (CollectiveSample& sample : truth_.collectives)
      if (cost_kind_of_collective(sample.kind, sample.group.nodes > 1) == kind) sample.median_s *= times;
  }

  /// Steps of the run, all alike.
  MeasuredSteps run(int steps = 5) const {
    const Timeline timeline = simulate(lowered_.program, CostModel(truth_), Overlap::none, true);
    MeasuredSteps measured{program_fingerprint(lowered_.program, lowered_.graph), {}};
    for (int s = 0; s < steps; ++s)
      measured.steps.push_back({2 * s + 3, timeline.step_s, timeline.step_s, timeline.rows});
    return measured;
  }

  Calibration calibrated(const MeasuredSteps& measured) const {
    return calibrate(lowered_.plan, lowered_.program, measured, profile_, "run");
  }

  static double factor(const Calibration& calibration, const std::string& kind) {
    for (const KindComparison& each : calibration.kinds)
      if (each.kind == kind) return each.factor;
    ADD_FAILURE() << "no " << kind;
    return 0;
  }

  /// That these are the factors, and all others 1; the corrected step is that of the run.
  void expect_factors(const Calibration& calibration, const std::map<std::string, double>& expected) const {
    for (const KindComparison& kind : calibration.kinds) {
      const auto found = expected.find(kind.kind);
      EXPECT_NEAR(kind.factor, found == expected.end() ? 1 : found->second, kRounding) << kind.kind;
    }
    const double step_s = simulate(lowered_.program, CostModel(truth_)).step_s;
    EXPECT_NEAR(calibration.corrected_s, step_s, kRounding * step_s);
    EXPECT_NEAR(calibration.host_s, 0, kRounding * step_s);
  }

  template <class Body>
  bool is(const TimelineRow& row) const {
    return std::holds_alternative<Body>(
        lowered_.program.meshes[row.mesh].segments[row.segment].instructions[row.instruction].body);
  }

  Lowered lowered_;
  Profile profile_, truth_;
};

TEST_F(CalibrationOfARun, FindsByWhatEachKindDiffersAndThenPredictsItsStep) {
  slow_down("einsum f32", 1.5);
  slow_down("all-reduce within nodes", 2);
  const Calibration calibration = calibrated(run(10));
  expect_factors(calibration,
                 {{"einsum f32", 1.5}, {"all-reduce within nodes", 2}, {"sums over all devices", 2}});
  EXPECT_EQ(calibration.predicted_s, simulate(lowered_.program, CostModel(profile_)).step_s);
  EXPECT_EQ(calibration.measured_s, run().steps[0].step_s);
  EXPECT_GT(calibration.corrected_s, 1.05 * calibration.predicted_s);
}

TEST_F(CalibrationOfARun, CorrectsAllMeasurementsOfAKindAndItsSpreadsAndSaysSo) {
  profile_.operators["einsum equation='m k, k n -> m n' f32[7x7] f32[7x7]"] = {
      .median_s = 4e-3, .spread_s = 2e-4, .sample_spread_s = 1e-4, .on_nodes = {{4e-3, 1e-4}, {}}};
  slow_down("einsum f32", 1.5);
  const Profile corrected = calibrated(run()).profile;
  const OperatorSample& other = corrected.operators.at("einsum equation='m k, k n -> m n' f32[7x7] f32[7x7]");
  EXPECT_NEAR(other.median_s, 6e-3, 1e-9);  // which the run did not have
  EXPECT_NEAR(other.sample_spread_s, 1.5e-4, 1e-10);
  EXPECT_NEAR(other.on_nodes[0].median_s, 6e-3, 1e-9);
  EXPECT_EQ(other.on_nodes[1], NodeTime{});
  const auto einsum = std::ranges::find(corrected.corrections, "einsum f32", &Correction::kind);
  ASSERT_NE(einsum, corrected.corrections.end());
  EXPECT_EQ(einsum->run, "run");
  EXPECT_NEAR(einsum->factor, 1.5, kRounding);
}

TEST_F(CalibrationOfARun, TakesWhatCollectivesPackAsCopies) {
  use(by_method("zero-3"));
  slow_down("all-gather within nodes", 3);
  expect_factors(calibrated(run()), {{"all-gather within nodes", 3}});
}

TEST_F(CalibrationOfARun, TakesCopiesForWhatLaunchesAndMemoryCost) {
  truth_.cluster.launch_s *= 2;
  truth_.cluster.memory_bytes_per_s /= 2;
  expect_factors(calibrated(run()), {{"copies", 2}});
}

// What takes longer because something is sent meanwhile would else be counted twice in later predictions.
TEST_F(CalibrationOfARun, LeavesOutWhatCommunicationBesideComputationCosts) {
  Lowered lowered = two_stages_of_two(4);
  lowered.program.overlap = Overlap::all;
  use(std::move(lowered));
  profile_.cluster.overlap_slowdown = truth_.cluster.overlap_slowdown = 2;
  MeasuredSteps measured = run();
  for (MeasuredStep& step : measured.steps)
    step.rows = simulate(lowered_.program, CostModel(truth_), true).rows;
  const Calibration calibration = calibrated(measured);
  for (const auto& [signature, sample] : profile_.operators)
    EXPECT_NEAR(factor(calibration, cost_kind_of_operator(signature)), 1, kRounding) << signature;
}

// An executor's receive lasts from when it is posted, and each mesh has a clock of its own.
TEST_F(CalibrationOfARun, LeavesOutWaitingForOtherMeshes) {
  slow_down("transfers within nodes", 4);
  slow_down("einsum f32", 1.5);
  MeasuredSteps measured = run();
  for (MeasuredStep& step : measured.steps) {
    Indexed<MeshIndex, double> at(lowered_.program.meshes.size());
    for (TimelineRow& row : step.rows)
      if (row.mesh == MeshIndex(1)) row.start_s += 3e-3;
    at[MeshIndex(1)] = 3e-3;
    std::ranges::sort(step.rows, {}, &TimelineRow::start_s);
    for (TimelineRow& row : step.rows) {
      const double end = row.start_s + row.duration_s;
      if (is<Receive>(row) || is<GlobalSum>(row)) {
        row.start_s = at[row.mesh];
        row.duration_s = end - row.start_s;
      }
      at[row.mesh] = end;
    }
  }
  expect_factors(calibrated(measured), {{"transfers within nodes", 4}, {"einsum f32", 1.5}});
}

TEST_F(CalibrationOfARun, IsNotMovedByAStepThatWasDisturbed) {
  slow_down("einsum f32", 1.5);
  MeasuredSteps measured = run();
  for (TimelineRow& row : measured.steps[2].rows) row.duration_s *= 10;
  measured.steps[2].step_s *= 10;
  measured.steps[3].next_step_s *= 10;
  expect_factors(calibrated(measured), {{"einsum f32", 1.5}});
}

TEST_F(CalibrationOfARun, BelievesFewTimedRunsInPart) {
  slow_down("embedding f32", 4);
  const Calibration once = calibrated(run(1)), often = calibrated(run(20));
  const auto timed = [](const Calibration& c) {
    return std::ranges::find(c.kinds, "embedding f32", &KindComparison::kind)->timed;
  };
  ASSERT_LT(timed(once), KindComparison::enough);
  EXPECT_NEAR(factor(once, "embedding f32"), std::pow(4, 1.0 * timed(once) / KindComparison::enough),
              kRounding);
  EXPECT_NEAR(factor(often, "embedding f32"), 4, kRounding);
}

TEST_F(CalibrationOfARun, SharesWhatTheHostTakesAmongTheCallsOfOperators) {
  use(by_method("serial"));
  MeasuredSteps measured = run();
  constexpr double gap_s = 1e-5;
  int calls = 0;
  for (MeasuredStep& step : measured.steps) {
    std::ranges::sort(step.rows, {}, &TimelineRow::start_s);
    calls = 0;
    double late_s = 0;
    for (TimelineRow& row : step.rows) {
      if (is<Compute>(row)) {
        late_s += gap_s;
        ++calls;
      }
      row.start_s += late_s;
    }
    step.step_s += late_s + 3e-4;  // to read the batch
    step.next_step_s = step.step_s;
  }
  const Calibration calibration = calibrated(measured);
  EXPECT_NEAR(calibration.host_s, calls * gap_s + 3e-4, kRounding);
  EXPECT_NEAR(calibration.call_gap_s, gap_s + 3e-4 / calls, kRounding);
  EXPECT_NEAR(calibration.corrected_s, calibration.measured_s, kRounding);
}

TEST_F(CalibrationOfARun, LeavesOutWhatMeasuringTheRowsTakes) {
  use(by_method("serial"));
  slow_down("einsum f32", 1.5);
  MeasuredSteps measured = run();
  constexpr double measuring_s = 2e-6;
  for (MeasuredStep& step : measured.steps) {
    std::ranges::sort(step.rows, {}, &TimelineRow::start_s);
    for (std::size_t r = 0; r < step.rows.size(); ++r) {
      step.rows[r].start_s += measuring_s * static_cast<double>(r);
      step.rows[r].duration_s += measuring_s;
    }
    step.step_s += measuring_s * static_cast<double>(step.rows.size());
  }
  expect_factors(calibrated(measured), {{"einsum f32", 1.5}});
}

class SumOverAllDevices : public CalibrationOfARun {
 protected:
  CollectiveSample& smallest(Profile& profile, int next = 0) const {
    const auto first = std::ranges::find_if(profile.collectives, [](const CollectiveSample& sample) {
      return sample.kind == CollectiveKind::all_reduce && sample.group == GroupShape{1, 4};
    });
    return first[next];
  }
};

TEST_F(SumOverAllDevices, CorrectsTheSmallestAllReduceAlone) {
  smallest(truth_).median_s *= 0.4;
  expect_factors(calibrated(run(10)), {{"sums over all devices", 0.4}});
}

// It ends when the last device is there, which may be late for another reason.
TEST_F(SumOverAllDevices, IsLatenessWhereItTakesLongerThanALargerOne) {
  const double next_s = smallest(profile_, 1).median_s, said_s = smallest(profile_).median_s;
  smallest(truth_).median_s = 5 * next_s;
  Calibration calibration = calibrated(run(10));
  EXPECT_NEAR(factor(calibration, "sums over all devices"), next_s / said_s, kRounding);
  EXPECT_NEAR(calibration.lateness_s, 4 * next_s, kRounding);
  EXPECT_GT(calibration.call_gap_s, 0);
  EXPECT_NEAR(smallest(calibration.profile).median_s, next_s, kRounding);
  EXPECT_NEAR(smallest(calibration.profile, 1).median_s, next_s, kRounding);
}

TEST_F(CalibrationOfARun, RefusesTheProfileOfOtherMachines) {
  profile_.cluster.device = "NVIDIA H100";
  EXPECT_THAT(
      [&] { calibrated(run()); },
      ThrowsMessage<Error>(AllOf(HasSubstr("the run was on 1 node of 4 devices (CPU), the profile is of 1 "
                                           "node of 4 devices (NVIDIA H100)"),
                                 HasSubstr("try: "))));
  profile_.cluster = lowered_.plan.cluster;
  profile_.cluster.nodes = 2;
  EXPECT_THAT([&] { calibrated(run()); }, ThrowsMessage<Error>(HasSubstr("the profile is of 2 nodes")));
}

TEST_F(CalibrationOfARun, RefusesTheProfileOfAnotherModel) {
  profile_.operators = {
      {"einsum equation='m k, k n -> m n' f32[7x7] f32[7x7]", {.median_s = 1e-3, .flops = 686}}};
  EXPECT_THAT([&] { calibrated(run()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("the profile lacks most of what the run computed"),
                                         HasSubstr("it was measured for another model"))));
}

TEST_F(CalibrationOfARun, IsPrintedKindByKindWithTheStepBeforeAndAfter) {
  slow_down("einsum f32", 1.5);
  const std::string table = calibration_table(calibrated(run()));
  EXPECT_THAT(table,
              AllOf(HasSubstr("kind, in a step "), testing::ContainsRegex("einsum f32 +[0-9.]+ % .* 1.500\n"),
                    HasSubstr("host and launches"), HasSubstr("waiting for other stages"),
                    testing::ContainsRegex("step: predicted .* -> .*, measured .* of 5 steps\\)\n")));
}

}  // namespace
}  // namespace alpa
