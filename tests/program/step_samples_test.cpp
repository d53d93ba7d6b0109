#include "libalpa/program/step_samples.h"

#include <gmock/gmock.h>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using ::testing::ElementsAre;

std::vector<StepSamples> of_devices(const Lowered& lowered) {
  const Program* const programs[] = {&lowered.program};
  return step_samples_of_devices(lowered.graph, programs);
}

constexpr std::int64_t kRowBytes = 8 * 4;  ///< a sequence of tokens, or of targets

TEST(StepSamples, OfOneDeviceAreAll) {
  const InputSamples all{2, 4, 0, 4, kRowBytes};
  EXPECT_THAT(of_devices(pinned("micro_batches = 2\n[[stage]]\nlayers = 4\n")),
              ElementsAre(StepSamples{all, all}));
}

// Four micro-batches of two samples. The first two devices have a sample each, and the tokens alone; the
// others have all samples, of which they take the targets.
TEST(StepSamples, AreThoseThatTheStageOfADeviceReads) {
  const InputSamples none{4, 2, 0, 0, kRowBytes}, first{4, 2, 0, 1, kRowBytes}, second{4, 2, 1, 1, kRowBytes},
      both{4, 2, 0, 2, kRowBytes};
  EXPECT_THAT(of_devices(two_stages_of_two(4)),
              ElementsAre(StepSamples{first, none}, StepSamples{second, none}, StepSamples{none, both},
                          StepSamples{none, both}));
}

TEST(StepSamples, AreNoneInTheMiddleOfAPipeline) {
  const std::vector<StepSamples> of = of_devices(four_stages("1f1b"));
  ASSERT_EQ(of.size(), 4u);
  EXPECT_GT(of[0][0].bytes(), 0);
  for (const std::size_t device : {1u, 2u, 3u}) EXPECT_EQ(of[device][0].bytes(), 0) << device;
}

TEST(StepSamples, OfSlicesOfSlicesAreEachDevicesOwn) {
  const std::vector<StepSamples> of = of_devices(
      pinned("[[stage]]\nlayers = 4\nmesh = [2, 2]\naxes = [\"data\", \"data\"]\n", small_cluster(4)));
  ASSERT_EQ(of.size(), 4u);
  for (std::int64_t device = 0; device < 4; ++device)
    for (const InputSamples& input : of[static_cast<std::size_t>(device)])
      EXPECT_EQ(input, (InputSamples{1, 8, 2 * device, 2, kRowBytes})) << device;
}

// Each has a part of every sequence, and whole samples are what is read.
TEST(StepSamples, AreAllWhereSequencesAreSplit) {
  for (const StepSamples& samples : of_devices(ring_of_four()))
    for (const InputSamples& input : samples) EXPECT_EQ(input, (InputSamples{1, 8, 0, 8, kRowBytes}));
}

TEST(StepSamples, AreThoseOfEveryProgramOfAPlan) {
  const Lowered lowered = two_stages_of_two(4);
  const Program evaluation = lower(lowered.graph, lowered.plan, Purpose::evaluate);
  const Program* const both[] = {&lowered.program, &evaluation};
  const Program* const one[] = {&lowered.program};
  for (const MeshIndex mesh : lowered.program.meshes.indices())
    for (const int place : {0, 1})
      EXPECT_EQ(step_samples(lowered.graph, both, mesh, {place}),
                step_samples(lowered.graph, one, mesh, {place}));
}

TEST(InputSamples, LieMicroBatchAfterMicroBatch) {
  const InputSamples input{.micro_batches = 2, .micro_batch_samples = 8, .first_row = 2, .rows = 3};
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < input.count(); ++row) samples.push_back(input.sample(row));
  EXPECT_THAT(samples, ElementsAre(2, 3, 4, 10, 11, 12));
}

}  // namespace
}  // namespace alpa
