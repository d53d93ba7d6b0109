// Whether finished plans meet constraints, of plans that are pinned so that they do or do not.
#include "libalpa/planner/search/met_constraints.h"

#include <gmock/gmock.h>

#include "libalpa/planner/search/constraints_file.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

struct MetCase {
  const char* name;
  const char* pin;
  std::string constraint;
  bool is_met;
};

constexpr const char* kDataThenTensor =
    "micro_batches = 4\nschedule = \"1f1b\"\n[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"data\"]\n"
    "[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"tensor\"]\n";
constexpr const char* kOneTensorStage = "[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"tensor\"]\n";
constexpr const char* kZero[] = {
    "[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"none\"\n",
    "[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"optimizer\"\n",
    "[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"gradients\"\n",
    "[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"parameters\"\n"};
constexpr const char* kRecomputed = "[[stage]]\nlayers = 4\nmesh = [2]\nrematerialize = true\n";
constexpr const char* kSelective =
    "[[stage]]\nlayers = 4\nmesh = [2]\nrematerialize = true\nrecompute_form = \"selective\"\n";
constexpr const char* kHalfRecomputed = "[[stage]]\nlayers = 4\nmesh = [2]\nrecomputed_layers = 2\n";

class MetConstraint : public testing::TestWithParam<MetCase> {};

TEST_P(MetConstraint, IsToldOfThePlan) {
  const Lowered lowered = pinned(GetParam().pin);
  const PlanConstraints constraints = parse_constraints(GetParam().constraint, "limits.toml");
  EXPECT_EQ(unmet_constraints(constraints, lowered.plan, lowered.graph).empty(), GetParam().is_met);
}

std::vector<MetCase> met_cases() {
  std::vector<MetCase> cases{
      {"TensorParallelismOverFour", kOneTensorStage, "most_tensor_parallel = 4", true},
      {"TensorParallelismOverMoreThanTwo", kOneTensorStage, "most_tensor_parallel = 2", false},
      {"TensorParallelismOnOneStage", kDataThenTensor, "most_tensor_parallel = 1", false},
      {"TwoStages", kDataThenTensor, "stages = 2", true},
      {"NotThreeStages", kDataThenTensor, "stages = 3", false},
      {"AtMostTwoStages", kDataThenTensor, "most_stages = 2", true},
      {"AtMostOneStage", kDataThenTensor, "most_stages = 1", false},
      {"MicroBatches", kDataThenTensor, "micro_batches = [4, 8]", true},
      {"OtherMicroBatches", kDataThenTensor, "micro_batches = [1, 2]", false},
      {"NothingRecomputed", kDataThenTensor, "recompute = \"never\"", true},
      {"SomethingRecomputed", kHalfRecomputed, "recompute = \"never\"", false},
      {"AllRecomputed", kRecomputed, "recompute = \"always\"", true},
      {"NotAllRecomputed", kHalfRecomputed, "recompute = \"always\"", false},
      {"AllRecomputedSelectively", kSelective, "recompute = \"selective\"", true},
      {"SelectivelyIsNotAlways", kSelective, "recompute = \"always\"", false},
      {"SelectivelyIsNotNever", kSelective, "recompute = \"never\"", false},
      {"FullIsNotSelective", kRecomputed, "recompute = \"selective\"", false},
      {"Schedule", kDataThenTensor, "schedule = \"1f1b\"", true},
      {"OtherSchedule", kDataThenTensor, "schedule = \"gpipe\"", false},
      {"Boundary", kDataThenTensor, "[[boundary]]\nafter = \"block.0\"", true},
      {"BoundaryFromTheOtherSide", kDataThenTensor, "[[boundary]]\nbefore = \"block.1\"", true},
      {"NoBoundary", kDataThenTensor, "[[boundary]]\nafter = \"embedding\"", false},
      {"Together", kDataThenTensor, "[[together]]\nlayers = [\"embedding\", \"block.0\"]", true},
      {"NotTogether", kDataThenTensor, "[[together]]\nlayers = [\"block.1\", \"block.0\"]", false},
      {"DevicesApart", kDataThenTensor, "[[apart]]\ndevices = [1, 2]", true},
      {"DevicesOfOneMesh", kDataThenTensor, "[[apart]]\ndevices = [2, 3]", false},
      // The first product of an MLP is split by columns, the second by rows (Megatron).
      {"WeightSplit", kOneTensorStage, "[[tensor]]\nname = \"block.*.up\"\nsplit = 1", true},
      {"WeightNotWhole", kOneTensorStage, "[[tensor]]\nname = \"block.*.up\"\nwhole = true", false},
      {"WeightSplitTheOtherWay", kOneTensorStage, "[[tensor]]\nname = \"block.*.down\"\nsplit = 1", false},
      {"WeightWhole", kDataThenTensor, "[[tensor]]\nname = \"block.0.up\"\nwhole = true", true},
      {"ResultSplitBySamples", kZero[0], "[[tensor]]\nname = \"b s d, d f -> b s f\"\nsplit = 0", true},
      {"ResultNotWhole", kZero[0], "[[tensor]]\nname = \"b s d, d f -> b s f\"\nwhole = true", false}};
  static const char* const names[] = {"ZeroNone", "ZeroOne", "ZeroTwo", "ZeroThree"};
  for (int of_plan = 0; of_plan < 4; ++of_plan)
    for (int most = 0; most < 4; ++most)
      cases.push_back(
          {names[of_plan], kZero[of_plan], "most_zero = " + std::to_string(most), of_plan <= most});
  return cases;
}

// What is held back is a gradient as any, and so is what it was made of in the step before.
TEST(MostZero, IsAlsoToldOfGradientsThatAreHeldBack) {
  const PlanningModel held{"held", "", 8, [](std::int64_t samples) {
                             TrainingOptions training;
                             training.gradient_delay = 1;
                             return narrow_and_wide(samples, 4, training);
                           }};
  for (int of_plan = 0; of_plan < 4; ++of_plan) {
    PlannerOptions options = without_buckets();
    options.pin = parse_pin(kZero[of_plan], "pin");
    const Plan plan = plan_quietly(held, small_cluster(4), options);
    const Graph graph = held.graph(plan.micro_batch_samples);
    for (int most = 0; most < 4; ++most)
      EXPECT_EQ(unmet_constraints(parse_constraints("most_zero = " + std::to_string(most), "limits.toml"),
                                  plan, graph)
                    .empty(),
                of_plan <= most)
          << kZero[of_plan] << " under " << most;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, MetConstraint, testing::ValuesIn(met_cases()),
                         [](const auto& met) { return met.param.name + std::to_string(met.index); });

}  // namespace
}  // namespace alpa
