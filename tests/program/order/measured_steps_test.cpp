#include "libalpa/program/order/measured_steps.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/program/text.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

class MeasuredStepsFile : public testing::Test {
 protected:
  MeasuredSteps simulated() const {
    const Timeline timeline = simulate(lowered_.program, CostModel(small_cluster(4)), Overlap::none, true);
    MeasuredSteps measured{fingerprint_,
                           {{3, timeline.step_s, 1e-3, timeline.rows}, {5, 2e-3, 3e-3, timeline.rows}}};
    for (TimelineRow& row : measured.steps[1].rows) row.duration_s *= 2;
    std::ranges::reverse(measured.steps[1].rows);  // in whatever order they ended
    return measured;
  }
  MeasuredSteps read() const { return read_measured_steps(path_, lowered_.program, fingerprint_); }
  void write(const MeasuredSteps& measured) const { write_measured_steps(path_, measured, {}); }

  static auto by_place(const TimelineRow& row) {
    return std::tuple(row.mesh, row.segment, row.micro_batch, row.instruction);
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "steps.h5";
  const Lowered lowered_ = two_stages_of_two();
  const std::string fingerprint_ = program_fingerprint(lowered_.program, lowered_.graph);
};

TEST_F(MeasuredStepsFile, GivesBackTheRowsOfEachStep) {
  MeasuredSteps written = simulated();
  write(written);
  const MeasuredSteps found = read();
  ASSERT_EQ(found.steps.size(), 2u);
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(found.steps[s].step, written.steps[s].step);
    EXPECT_EQ(found.steps[s].step_s, written.steps[s].step_s);
    EXPECT_EQ(found.steps[s].next_step_s, written.steps[s].next_step_s);
    std::ranges::sort(written.steps[s].rows, {}, by_place);
    ASSERT_EQ(found.steps[s].rows.size(), written.steps[s].rows.size());
    for (std::size_t r = 0; r < found.steps[s].rows.size(); ++r) {
      const TimelineRow &a = found.steps[s].rows[r], &b = written.steps[s].rows[r];
      EXPECT_EQ(by_place(a), by_place(b));
      EXPECT_EQ(std::tuple(a.lane, a.kind, a.start_s, a.duration_s),
                std::tuple(b.lane, b.kind, b.start_s, b.duration_s));
    }
  }
}

TEST_F(MeasuredStepsFile, ReadsInH5dumpAsColumnsWithUnits) {
  write(simulated());
  EXPECT_THAT(run_command("h5dump -d /steps/number " + path_.string()).output, HasSubstr("(0): 3, 5"));
  EXPECT_THAT(run_command("h5dump -a /duration_s/units " + path_.string()).output, HasSubstr("(0): \"s\""));
}

TEST_F(MeasuredStepsFile, IsRefusedForAnotherProgram) {
  MeasuredSteps measured = simulated();
  measured.program_fingerprint = "another";
  write(measured);
  EXPECT_THAT([&] { read(); },
              ThrowsMessage<Error>(HasSubstr("it is of program another, and the plan beside it")));
}

TEST_F(MeasuredStepsFile, IsRefusedWithRowsThatTheProgramHasNot) {
  MeasuredSteps measured = simulated();
  for (MeasuredStep& step : measured.steps)
    for (TimelineRow& row : step.rows) row.micro_batch = -1;
  write(measured);
  EXPECT_THAT([&] { read(); },
              ThrowsMessage<Error>(HasSubstr("is not the program's instruction at that place")));
  measured = simulated();
  for (MeasuredStep& step : measured.steps) step.rows.resize(10);
  write(measured);
  EXPECT_THAT([&] { read(); }, ThrowsMessage<Error>(HasSubstr("/rows/mesh")));
}

TEST_F(MeasuredStepsFile, IsRefusedWithTimesThatCannotBe) {
  MeasuredSteps measured = simulated();
  measured.steps[1].rows[5].duration_s = -1;
  write(measured);
  EXPECT_THAT([&] { read(); },
              ThrowsMessage<Error>(HasSubstr("/duration_s has -1, expected from 0 to 1000")));
  write({fingerprint_, {}});
  EXPECT_THAT([&] { read(); }, ThrowsMessage<Error>(HasSubstr("steps.h5")));
}

}  // namespace
}  // namespace alpa
