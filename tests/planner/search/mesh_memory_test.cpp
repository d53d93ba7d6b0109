#include "libalpa/planner/search/mesh_memory.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::ElementsAre;

StageRequest with_reserve(std::int64_t bytes, int first_device = 0) {
  StageRequest request;
  request.reserve_bytes = bytes;
  request.first_device = DeviceIndex(first_device);
  request.in_flight = 2;
  return request;
}

StageSolution holding(std::int64_t lasting, std::int64_t working, std::int64_t per_micro_batch) {
  StageSolution solution;
  solution.feasible = true;
  solution.lasting_bytes = lasting;
  solution.resident_bytes = lasting + working;
  solution.micro_batch_bytes = per_micro_batch;
  return solution;
}

/// With a reserve, which is a part of what it needs.
StageSolution short_of(std::int64_t needed) {
  StageSolution solution;
  solution.least_memory = needed;
  return solution;
}

std::vector<std::int64_t> reserves(const std::vector<StageRequest>& requests) {
  std::vector<std::int64_t> bytes;
  for (const StageRequest& request : requests) bytes.push_back(request.reserve_bytes);
  return bytes;
}

TEST(StagesOnMeshes, AreThoseWithTheSameFirstDevice) {
  EXPECT_THAT(stages_on_meshes({with_reserve(0, 4), with_reserve(0, 0), with_reserve(0, 4)}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

TEST(MeshMemory, GivesAStageThatDoesNotFitWhatItNeedsOfItsReserve) {
  std::vector<StageRequest> requests{with_reserve(6400), with_reserve(3000)};
  const std::vector<StageSolution> solutions{short_of(12'800), holding(1000, 500, 100)};
  const MeshMemory memory{requests, solutions, {0, 1}, 10'000};
  EXPECT_TRUE(memory.is_short());
  EXPECT_TRUE(memory.make_room());
  EXPECT_THAT(reserves(requests), ElementsAre(10'000 - 6400 - 100, 3000));
}

// What was not solved yet is neither.
TEST(MeshMemory, DoesNotCountStagesThatAreNotSolvedAsShort) {
  std::vector<StageRequest> requests{with_reserve(6400), with_reserve(3000)};
  const std::vector<StageSolution> solutions{short_of(12'800), StageSolution{}};
  EXPECT_TRUE((MeshMemory{requests, solutions, {0, 1}, 10'000}.make_room()));
  EXPECT_FALSE((MeshMemory{requests, solutions, {1}, 10'000}.is_short()));
}

TEST(MeshMemory, HasNoRoomForAStageThatWouldNotFitAloneAndChangesNothing) {
  std::vector<StageRequest> requests{with_reserve(6400), with_reserve(3000)};
  const std::vector<StageSolution> solutions{short_of(12'800), short_of(13'500)};
  EXPECT_FALSE((MeshMemory{requests, solutions, {0, 1}, 10'000}.make_room()));
  EXPECT_THAT(reserves(requests), ElementsAre(6400, 3000));
  EXPECT_FALSE((MeshMemory{requests, solutions, {0}, 10'000}.make_room()));  // it has the mesh for itself
}

// They hold 4,500 and 1,500 all the time, and leave a quarter more than the 800 that are too much.
TEST(MeshMemory, HasStagesLeaveWhatTheirProgramTookTooMuchByWhatTheyHoldAllTheTime) {
  std::vector<StageRequest> requests{with_reserve(0), with_reserve(0)};
  const std::vector<StageSolution> solutions{holding(2500, 2000, 1000), holding(500, 3000, 500)};
  const MeshMemory memory{requests, solutions, {0, 1}, 8000};
  memory.leave(800, true);
  for (std::size_t s = 0; s < 2; ++s) {
    const std::int64_t may_hold = 8000 - requests[s].reserve_bytes;
    const std::int64_t held = live_bytes(requests[s], solutions[s]);
    EXPECT_EQ(held - may_hold, s == 0 ? 750 : 250);
  }
}

}  // namespace
}  // namespace alpa
