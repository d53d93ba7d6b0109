#include "libalpa/trainer/traced_steps.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/text.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

class TracedStepsOfARun : public testing::Test {
 protected:
  TracedSteps of_run(std::int64_t done, std::int64_t total) const {
    return {settings_,   lowered_.plan,          lowered_.graph, lowered_.program,
            provenance_, TimelineKind::measured, done,           total};
  }

  static std::vector<std::int64_t> traced(const TracedSteps& steps) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t step = 0; step < 40; ++step)
      if (steps.has(step)) numbers.push_back(step);
    return numbers;
  }

  /// Trains up to that step.
  void run(TracedSteps& steps, std::int64_t first, std::int64_t last) const {
    const std::vector<RankRows> rows =
        simulated_ranks(lowered_.program, CostModel(small_cluster(4)), traced_ranks(lowered_.program));
    for (std::int64_t step = first; step <= last; ++step)
      if (steps.has(step))
        steps.add(step, 2.0 + static_cast<double>(step), {rows, {1'000, 1'000, 1'000, 3'000}});
      else if (steps.has(step - 1))
        steps.add_between(step, 1.0 + static_cast<double>(step));
  }

  MeasuredSteps kept() const {
    return read_measured_steps(measured_steps_path(folder_.path()), lowered_.program,
                               program_fingerprint(lowered_.program, lowered_.graph));
  }

  TemporaryFolder folder_;
  const Lowered lowered_ = two_stages_of_two();
  const Provenance provenance_ = {};
  TrainSettings settings_ = [this] {
    TrainSettings settings;
    settings.run_dir = folder_.path();
    settings.timeline_steps = 3;
    return settings;
  }();
};

TEST(CheckTrace, WantsAFolderThatIsThereOrThatTheRunMakes) {
  const TemporaryFolder folder;
  TrainSettings settings;
  settings.run_dir = folder.path() / "run";
  const auto check = [&](const std::filesystem::path& trace) {
    settings.trace = trace;
    check_trace(settings);
  };
  check("");
  check(folder.path() / "trace.json");
  check(folder.path() / "." / "run" / "trace.json");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT([&] { check(folder.path() / "traces" / "trace.json"); },
              ThrowsMessage<Error>(HasSubstr("mkdir -p")));
  EXPECT_THAT([&] { check(folder.path()); }, ThrowsMessage<Error>(HasSubstr("the name of a file")));
}

TEST_F(TracedStepsOfARun, AreEverySecondOneAfterTheFirstTwo) {
  EXPECT_THAT(traced(of_run(0, 100)), ElementsAre(3, 5, 7));
  EXPECT_THAT(traced(of_run(20, 100)), ElementsAre(23, 25, 27));
  EXPECT_EQ(of_run(0, 8).shortage(), "");
  EXPECT_THAT(traced(of_run(0, 7)), ElementsAre(3, 5));
  EXPECT_THAT(of_run(0, 7).shortage(), HasSubstr("the timeline is kept of 2 steps, not 3"));
  EXPECT_THAT(traced(of_run(0, 2)), IsEmpty());
}

TEST_F(TracedStepsOfARun, AreForATraceTheThirdOrTheLast) {
  settings_.trace = folder_.path() / "trace.json";
  settings_.timeline_steps = 0;
  EXPECT_THAT(traced(of_run(0, 100)), ElementsAre(3));
  EXPECT_THAT(traced(of_run(0, 1)), ElementsAre(1));
  TracedSteps steps = of_run(0, 100);
  run(steps, 1, 5);
  EXPECT_TRUE(std::filesystem::exists(settings_.trace));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "timeline"));
}

TEST_F(TracedStepsOfARun, AreWrittenWithThoseBetweenAsSoonAsTheyAreComplete) {
  TracedSteps steps = of_run(0, 100);
  steps.prepare();
  run(steps, 1, 7);
  EXPECT_FALSE(std::filesystem::exists(measured_steps_path(folder_.path())));
  run(steps, 8, 8);
  const MeasuredSteps found = kept();
  ASSERT_EQ(found.steps.size(), 3u);
  EXPECT_EQ(found.steps[1].step, 5);
  EXPECT_EQ(found.steps[1].step_s, 7);
  EXPECT_EQ(found.steps[1].next_step_s, 7);
  EXPECT_TRUE(std::filesystem::exists(measured_plan_path(folder_.path())));
}

TEST_F(TracedStepsOfARun, SayWhichRankComputesLongest) {
  TracedSteps steps = of_run(0, 100);
  EXPECT_EQ(steps.slowest_text(), "");
  run(steps, 1, 5);
  EXPECT_EQ(steps.slowest_text(),
            "rank 3 computes 3.0 us a step, 3.00 times as long as the other ranks of its mesh");
}

TEST_F(TracedStepsOfARun, AreThoseThereAreWhereItStopsEarly) {
  TracedSteps steps = of_run(0, 100);
  steps.prepare();
  run(steps, 1, 5);  // nothing follows the fifth
  steps.finish();
  ASSERT_EQ(kept().steps.size(), 1u);
  EXPECT_EQ(kept().steps[0].step, 3);
  TracedSteps next = of_run(5, 100);
  next.prepare();
  EXPECT_FALSE(std::filesystem::exists(measured_steps_path(folder_.path())));
}

}  // namespace
}  // namespace alpa
