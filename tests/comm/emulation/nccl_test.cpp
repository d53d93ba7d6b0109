// The communicator over NCCL without a GPU: its sources on an emulation of NCCL (emulated_nccl.h), its ranks
// threads with memory of the host.
#include <gmock/gmock.h>
#include <nccl.h>

#include <atomic>
#include <optional>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_session.h"
#include "tests/comm/communicator_conformance.h"
#include "tests/comm/emulation/emulated_nccl.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;

template <class Body>
void run_with_nccl(int ranks, Body body) {
  emulation::reset_nccl();
  run_on_threads(ranks, [&](int, Communicator& bootstrap) {
    const auto device = make_cpu_device(1);
    const auto group = make_nccl_communicator(*device, bootstrap);
    body(*group, *device);
  });
}

class EmulatedNccl : public ::testing::TestWithParam<conformance::Case> {};

TEST_P(EmulatedNccl, HoldsOnOneToFourRanks) {
  for (const int ranks : {1, 2, 3, 4})
    run_with_nccl(ranks, [&](Communicator& group, Device& device) {
      SCOPED_TRACE("rank " + std::to_string(group.rank()) + " of " + std::to_string(ranks));
      const auto stream = device.make_stream();
      conformance::Rank under_test{group, device, *stream, true, conformance::kOnePiece};
      GetParam().run(under_test);
    });
}

INSTANTIATE_TEST_SUITE_P(Case, EmulatedNccl, ::testing::ValuesIn(conformance::cases()),
                         [](const auto& test) { return test.param.name; });

TEST(NcclPairs, EndInAnOrderInWhichTheRanksOfEachMeet) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    run_with_nccl(ranks, [](Communicator&, Device&) {});
    EXPECT_FALSE(emulation::ends_waited_in_a_circle()) << ranks << " ranks";
  }
}

TEST(NcclPairs, EndSoBesideGroupsThatWereSplit) {
  run_with_nccl(4, [](Communicator& group, Device&) {
    const auto row = group.split(group.rank() / 2), column = group.split(group.rank() % 2);
  });
  EXPECT_FALSE(emulation::ends_waited_in_a_circle());
}

// Rank 1 makes no communicator. Rank 0 would wait for it for ever; here its end is that the call returns.
TEST(NcclWaits, AreGivenUpWhereAPeerDoesNotCome) {
  emulation::reset_nccl();
  const auto device = make_cpu_device(1);
  std::optional<Error> given_up;
  device->waits().limit(
      {10, 100}, [](const std::string&) {},
      [&](const Error& error) {
        given_up = error;
        emulation::release_nccl();
      });
  run_on_threads(2, [&](int rank, Communicator& bootstrap) {
    if (rank == 0) {
      EXPECT_THROW(make_nccl_communicator(*device, bootstrap), Error);
      return;
    }
    const auto stream = device->make_stream();
    ncclUniqueId id;
    bootstrap.broadcast(*stream, &id, sizeof id, 0);
    bootstrap.barrier();
    while (!given_up) device->waits().look(1);
  });
  EXPECT_EQ(given_up->kind(), ErrorKind::peer);
  EXPECT_THAT(given_up->happened(), HasSubstr("ncclCommInitRank has lasted 1m40s: another rank hangs"));
}

}  // namespace
}  // namespace alpa
