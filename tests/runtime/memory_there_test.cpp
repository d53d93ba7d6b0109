#include "libalpa/runtime/memory_there.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Property;
using testing::Throws;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

/// Of four ranks, two on a node; the device of the last has 6 GiB, of the others 8, and their nodes 12.
MemoryThere found(const CostModel* costs) {
  std::vector<MemoryThere> there(4);
  run_on_threads(4, [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_emulated_device("device", (rank == 3 ? 6 : 8) * kGib),
                                  host = make_emulated_device("host", 12 * kGib);
    const std::unique_ptr<Communicator> control = world.duplicate(), files = world.duplicate();
    there[static_cast<std::size_t>(rank)] =
        memory_there({*device, world, *host, *control, *files, costs, 2}, *host->make_stream());
  });
  for (const MemoryThere& of_rank : there) {
    EXPECT_EQ(of_rank.device, there[0].device);
    EXPECT_EQ(of_rank.node, there[0].node);
  }
  return there[0];
}

TEST(MemoryThere, IsThatOfTheRankWithTheLeast) {
  const CostModel costs{Cluster()};
  const MemoryThere of_devices = found(&costs);
  EXPECT_EQ(of_devices.device, 6 * kGib);
  EXPECT_EQ(of_devices.node, 6 * kGib);
  EXPECT_FALSE(of_devices.is_the_same);
}

TEST(MemoryThere, IsSharedByTheRanksOfANodeThatComputeInIt) {
  const MemoryThere there = found(nullptr);
  EXPECT_EQ(there.device, 3 * kGib);
  EXPECT_TRUE(there.is_the_same);
}

TEST(CheckArena, NamesWhatIsTakenWhatIsThereAndWhatToTry) {
  MemoryThere there;
  there.device = 8 * kGib;
  check_arena(there, 8 * kGib, "the plan takes", "less");
  EXPECT_THAT(
      [&] { check_arena(there, 9 * kGib, "the plan takes", "less"); },
      Throws<Error>(AllOf(Property(&Error::kind, ErrorKind::allocation),
                          Property(&Error::happened, "the plan takes 9.00 GiB per rank, 8.00 GiB is there"),
                          Property(&Error::hint, "less"))));
  there.reserved = 2 * kGib;
  EXPECT_THAT(
      [&] { check_arena(there, 7 * kGib, "the plan takes", "less"); },
      Throws<Error>(Property(&Error::happened,
                             "the plan takes 7.00 GiB per rank and 2.00 GiB are kept for CUDA and its "
                             "libraries, 8.00 GiB is there")));
}

}  // namespace
}  // namespace alpa
