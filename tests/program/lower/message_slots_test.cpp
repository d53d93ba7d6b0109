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
  for (const PipelineSchedule& schedule : schedules())
    for (const int stages : {2, 3, 5})
      EXPECT_THAT(slots_of(schedule.name, stages, 8, neighbours(stages)), testing::Each(1)) << schedule.name;
}

// Of a value that passes stages by, forward and back, more than one may be on its way, but not one for each
// micro-batch.
TEST(MessageSlots, AreMoreWhereAValuePassesStagesBy) {
  std::vector<Way> ways = neighbours(4);
  ways.push_back({3_s, 0_s, true});
  ways.push_back({0_s, 3_s, false});
  EXPECT_THAT(slots_of("gpipe", 4, 8, ways), testing::Each(1));
  const std::vector<std::int64_t> slots = slots_of("1f1b", 4, 8, ways);
  EXPECT_GT(*std::ranges::max_element(slots), 1);
  EXPECT_LT(*std::ranges::max_element(slots), 4);
}

TEST(MessageSlots, OfStagesThatWaitForEachOtherWhateverTheSlotsEnd) {
  const std::vector<std::vector<StageRun>> orders{
      {{SegmentKind::backward, 0, 0_s}, {SegmentKind::forward, 0, 0_s}},
      {{SegmentKind::forward, 0, 1_s}, {SegmentKind::backward, 0, 1_s}}};
  EXPECT_THAT(message_slots(orders, neighbours(2)), testing::Each(1));
}

}  // namespace
}  // namespace alpa
