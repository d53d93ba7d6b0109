#include "libalpa/plan/check_plan_file.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/plan/plan_file.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Lowered& sound() {
  static const Lowered lowered = two_stages_of_two();
  return lowered;
}

TEST(CheckToldColumns, AcceptsWhatIsWrittenAndRefusesNamesOfAnotherModel) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "plan.h5";
  write_plan(path, sound().plan, sound().graph, {});
  EXPECT_NO_THROW(check_told_columns(path, sound().plan, sound().graph));
  Graph other = sound().graph;
  other.nodes[2_n].name = "another";
  EXPECT_THAT([&] { check_told_columns(path, sound().plan, other); },
              ThrowsMessage<Error>(AllOf(HasSubstr("plan.h5"), HasSubstr("/nodes/name, row 2: "),
                                         HasSubstr("expected 'another'"))));
}

/// One figure of a plan that is not what its program makes, and what the refusal has to name.
struct SpoiltPrediction {
  std::string name;
  std::function<void(Prediction&)> spoil;
  std::string why;
};

class CheckPrediction : public testing::TestWithParam<SpoiltPrediction> {
 protected:
  static void check(const Plan& plan) { check_prediction("plan.h5", plan, sound().plan.prediction); }
};

Candidate& chosen(Prediction& p) { return p.candidates.front(); }

TEST_F(CheckPrediction, AcceptsWhatThePlannerMakes) { EXPECT_NO_THROW(check(sound().plan)); }

TEST_P(CheckPrediction, RefusesAndNamesTheRow) {
  Plan plan = sound().plan;
  GetParam().spoil(plan.prediction);
  EXPECT_THAT([&] { check(plan); },
              ThrowsMessage<Error>(AllOf(HasSubstr("plan 'plan.h5'"), HasSubstr(GetParam().why))));
}

INSTANTIATE_TEST_SUITE_P(
    SpoiltPrediction, CheckPrediction,
    testing::ValuesIn(std::vector<SpoiltPrediction>{
        {"Meshes", [](Prediction& p) { p.meshes.pop_back(); }, "/prediction has 1 meshes, expected 2"},
        {"Step", [](Prediction& p) { p.step_s *= 1.01; }, "/prediction/step_s, row 0: "},
        {"ErrorOfWhatIsNotMeasured", [](Prediction& p) { p.step_error_s = 1e-6; },
         "/prediction/step_error_s, row 0: "},
        {"Compute", [](Prediction& p) { p.meshes[1_m].compute_s *= 1.01; },
         "/prediction/time/compute, row 1: "},
        {"Arena", [](Prediction& p) { p.meshes[1_m].memory.total += 1; },
         "/prediction/memory/arena, row 1: "},
        {"Gradients", [](Prediction& p) { p.meshes[0_m].memory.gradients = 7; },
         "/prediction/memory/gradients, row 0: 7, expected "},
        {"InFlight", [](Prediction& p) { p.meshes[0_m].in_flight = 3; },
         "/prediction/in_flight, row 0: 3, expected 2"},
        {"Bound", [](Prediction& p) { p.lower_bound_s = 2 * p.step_s; },
         "/prediction/lower_bound_s, row 0: "},
        {"NoneChosen", [](Prediction& p) { chosen(p).verdict = "slower"; }, "/candidates/verdict"},
        {"OtherMethod", [](Prediction& p) { chosen(p).method = "serial: 1 stage"; },
         "/candidates/method, row 0: "},
        {"StepOfTheChosen", [](Prediction& p) { chosen(p).step_s *= 1.01; }, "/candidates/step_s, row 0: "},
        {"MemoryOfTheChosen", [](Prediction& p) { chosen(p).memory_bytes = 7; },
         "/candidates/memory, row 0: 7, expected "},
        {"TimeOfTheChosen", [](Prediction& p) { chosen(p).busiest.idle_s += 1; },
         "/candidates/busiest_mesh/idle, row 0: "}}),
    [](const auto& test) { return test.param.name; });

TEST_F(CheckPrediction, TakesTheTimesOfAProfileWhereTheyAgreeWithEachOther) {
  Plan plan = sound().plan;
  plan.profile_fingerprint = "of a profile";
  for (MeshPrediction& mesh : plan.prediction.meshes)
    for (double* part : {&mesh.compute_s, &mesh.collective_s, &mesh.transfer_s, &mesh.idle_s}) *part *= 2;
  plan.prediction.step_s *= 2;
  for (double* part :
       {&chosen(plan.prediction).busiest.compute_s, &chosen(plan.prediction).busiest.collective_s,
        &chosen(plan.prediction).busiest.transfer_s, &chosen(plan.prediction).busiest.idle_s,
        &chosen(plan.prediction).step_s})
    *part *= 2;
  EXPECT_NO_THROW(check(plan));
  plan.prediction.meshes[0_m].compute_s *= 1.01;
  EXPECT_THAT([&] { check(plan); }, ThrowsMessage<Error>(HasSubstr("the times of the mesh add up to")));
}

}  // namespace
}  // namespace alpa
