#include "libalpa/program/lower/message_slots.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tests/support/index_literals.h"

namespace alpa {
namespace {

std::vector<std::int64_t> slots_of(const char* schedule, int stages, int micro_batches,
                                   const std::vector<Way>& ways) {
  std::vector<int> own_mesh(static_cast<std::size_t>(stages));
  std::iota(own_mesh.begin(), own_mesh.end(), 0);
  return message_slots(mesh_orders(find_schedule(schedule), own_mesh, micro_batches), ways);
}

std::vector<Way> neighbours(int stages) {
  std::vector<Way> ways;
  for (int stage = 0; stage + 1 < stages; ++stage) {
    ways.push_back({StageIndex(stage), StageIndex(stage + 1), false});
    ways.push_back({StageIndex(stage + 1), StageIndex(stage), true});
  }
  return ways;
}

TEST(MessageSlots, AreOneBetweenNeighbours) {
  for (const std::string& schedule : schedule_names(1))
    for (const int stages : {2, 3, 5})
      EXPECT_THAT(slots_of(schedule.c_str(), stages, 8, neighbours(stages)), testing::Each(1)) << schedule;
}

// When the last of four stages is at one micro-batch, the first is three further.
TEST(MessageSlots, AreOneForEachStageOnTheWayWhereAValuePassesStagesBy) {
  std::vector<Way> ways = neighbours(4);
  ways.push_back({3_s, 0_s, true});
  ways.push_back({0_s, 3_s, false});
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const std::vector<std::int64_t> slots = slots_of(schedule, 4, 8, ways);
    EXPECT_THAT(std::vector(slots.end() - 2, slots.end()), testing::Each(4)) << schedule;
    EXPECT_THAT(std::vector(slots.begin(), slots.end() - 2), testing::Each(1)) << schedule;
  }
}

TEST(MessageSlots, AreNoMoreThanThereAreMicroBatchesInFlight) {
  std::vector<Way> ways = neighbours(5);
  ways.push_back({4_s, 2_s, true});  // the third of five has three in flight
  ways.push_back({4_s, 0_s, true});  // and here are two micro-batches
  EXPECT_EQ(slots_of("1f1b", 5, 8, ways)[8], 3);
  EXPECT_EQ(slots_of("1f1b", 5, 2, ways)[9], 2);
}

TEST(MessageSlots, OfStagesThatWaitForEachOtherWhateverTheSlotsEnd) {
  const std::vector<std::vector<StageRun>> orders{
      {{SegmentKind::backward, 0, 0_s}, {SegmentKind::forward, 0, 0_s}},
      {{SegmentKind::forward, 0, 1_s}, {SegmentKind::backward, 0, 1_s}}};
  EXPECT_THAT(message_slots(orders, neighbours(2)), testing::Each(1));
}

}  // namespace
}  // namespace alpa
