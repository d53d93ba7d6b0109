#include "libalpa/program/receivers.h"

#include <gmock/gmock.h>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// [device] Of channel 0.
std::vector<std::vector<int>> of_devices(const Lowered& lowered, int devices) {
  const Program* const programs[] = {&lowered.program};
  std::vector<std::vector<int>> receivers;
  for (int device = 0; device < devices; ++device)
    receivers.push_back(receivers_of(programs, DeviceIndex(device), 0));
  return receivers;
}

// The first and the last stage have the embedding in common.
TEST(Receivers, OfAPipelineAreTheStagesBesideADevicesAndThoseOfTiedWeights) {
  EXPECT_THAT(of_devices(four_stages("1f1b"), 4),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(0, 2)));
}

TEST(Receivers, OfARingAreTheNextOfEach) {
  EXPECT_THAT(of_devices(ring_of_four(), 4),
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3), ElementsAre(0)));
}

// What comes to one device of a stage and is passed on there is a message of that device.
TEST(Receivers, AreThoseThatAnythingIsPassedOnTo) {
  const Lowered lowered = two_stages_of_two(4);
  const Program* const programs[] = {&lowered.program};
  for (const int device : {0, 1, 2, 3}) {
    std::set<int> receivers;
    for (const StageTransfer& transfer : lowered.program.transfers)
      for (const TransferMessage& message : transfer.route.messages)
        if (message.from == device) receivers.insert(message.to);
    EXPECT_THAT(receivers_of(programs, DeviceIndex(device), 0), testing::ElementsAreArray(receivers));
    EXPECT_THAT(receivers_of(programs, DeviceIndex(device), 1), IsEmpty());
  }
}

TEST(Receivers, AreNoneWhereAllAgreeByCollectives) {
  const Lowered lowered = pinned("[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\n", small_cluster(2));
  EXPECT_THAT(of_devices(lowered, 2), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace alpa
