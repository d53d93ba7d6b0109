#include "libalpa/program/state_tiles.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// A pipeline of a mesh that has two copies of its stage and one that cuts its own.
Lowered copies_and_pieces() {
  return pinned(R"(micro_batches = 2
schedule = "1f1b"
[[stage]]
layers = 2
mesh = [2]
axes = ["data"]
state_sharding = "none"
[[stage]]
layers = 2
mesh = [2]
axes = ["tensor"]
)");
}

TEST(StateTiles, CoverEachStateOnItsMeshes) {
  const Lowered lowered = copies_and_pieces();
  ASSERT_EQ(device_count(lowered.program), 4);
  std::vector<std::int64_t> held(lowered.graph.states.size());  // elements, those of copies once
  std::vector<std::set<Shape>> origins(lowered.graph.states.size());
  for (const DeviceIndex device : {0_d, 1_d, 2_d, 3_d})
    for (const StateTile& tile : state_tiles(lowered.graph, lowered.program, device))
      if (origins[tile.state].insert(tile.origin).second) held[tile.state] += element_count(tile.tile.shape);
  for (const StateIndex s : lowered.graph.states.indices())
    EXPECT_EQ(held[s], element_count(value_of(lowered.graph, lowered.graph.states[s].value).type.shape));
}

TEST(StateTiles, AreAllOfAStateOnADeviceWithACopy) {
  const Lowered lowered = copies_and_pieces();
  const auto first = state_tiles(lowered.graph, lowered.program, 0_d),
             second = state_tiles(lowered.graph, lowered.program, 1_d);
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].tile, value_of(lowered.graph, lowered.graph.states[first[i].state].value).type);
    EXPECT_EQ(first[i].tile, second[i].tile);
    EXPECT_EQ(first[i].origin, Shape(first[i].origin.size(), 0));
  }
}

TEST(PlaceOf, IsTheMeshOfADeviceAndItsCoordinate) {
  const Lowered lowered = copies_and_pieces();
  const ProgramPlace place = place_of(lowered.program, 3_d);
  EXPECT_EQ(place.mesh, 1_m);
  EXPECT_EQ(place.coordinate, std::vector<int>{1});
}

}  // namespace
}  // namespace alpa
