#include "libalpa/program/message_pairs.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<int, int>> of(const Lowered& lowered, int channel = 0) {
  const Program* const programs[] = {&lowered.program};
  return message_pairs(programs, channel);
}

// The first and the last stage have the embedding in common.
TEST(MessagePairs, OfAPipelineAreStagesBesideEachOtherAndThoseOfTiedWeights) {
  EXPECT_THAT(of(four_stages("1f1b")), ElementsAre(Pair(0, 1), Pair(0, 3), Pair(1, 0), Pair(1, 2), Pair(2, 1),
                                                   Pair(2, 3), Pair(3, 0), Pair(3, 2)));
}

TEST(MessagePairs, OfARingAreEachAndTheNext) {
  EXPECT_THAT(of(ring_of_four()), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3), Pair(3, 0)));
}

// What comes to one device of a stage and is passed on there is a message of that device.
TEST(MessagePairs, AreThoseOfAllMessagesOfTheChannel) {
  const Lowered lowered = two_stages_of_two(4);
  std::set<std::pair<int, int>> pairs;
  for (const StageTransfer& transfer : lowered.program.transfers)
    for (const TransferMessage& message : transfer.route.messages) pairs.insert({message.from, message.to});
  EXPECT_GE(pairs.size(), 4u);
  EXPECT_THAT(of(lowered), testing::ElementsAreArray(pairs));
  EXPECT_THAT(of(lowered, 1), IsEmpty());
}

TEST(MessagePairs, AreNoneWhereAllAgreeByCollectives) {
  EXPECT_THAT(of(pinned("[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\n", small_cluster(2))),
              IsEmpty());
}

}  // namespace
}  // namespace alpa
