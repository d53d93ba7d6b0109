// The communicator over NCCL without a GPU: its sources on an emulation of NCCL (emulated_nccl.h), its ranks
// threads.
#include <gmock/gmock.h>
#include <nccl.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_session.h"
#include "libalpa/comm/staged_communicator.h"
#include "tests/comm/communicator_conformance.h"
#include "tests/comm/emulation/emulated_nccl.h"
#include "tests/kernels/emulation/emulated_device.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;

/// body(group, device) of ranks that may send to none yet.
template <class Body>
void run_apart(int ranks, Body body) {
  emulation::reset_nccl();
  run_on_threads(ranks, [&](int, Communicator& bootstrap) {
    const auto device = emulation::make_device(emulation::Order::random);
    const auto staged = make_staged_communicator(*device, bootstrap.duplicate());
    const auto group = make_nccl_communicator(*device, *staged);
    body(*group, *device);
  });
}

template <class Body>
void run_with_nccl(int ranks, Body body) {
  run_apart(ranks, [&](Communicator& group, Device& device) {
    conformance::connect_to_all(group);
    body(group, device);
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

// However many ranks there are: a communicator takes memory of each, and time of all to make.
TEST(NcclPairs, AreThoseThatAreAskedFor) {
  std::atomic<int> most = 0;
  run_apart(6, [&](Communicator& group, Device& device) {
    std::vector<RankPair> ring;
    for (int rank = 0; rank < 6; ++rank) ring.emplace_back(rank, (rank + 1) % 6);
    for (int time = 0; time < 2; ++time) group.connect(ring);
    group.barrier();
    most = emulation::communicators();
    group.barrier();
    const int next = (group.rank() + 1) % 6;
    const auto stream = device.make_stream();
    const auto memory = device.allocate(8);
    group.send(*stream, memory->data(), 4, next);
    group.receive(*stream, static_cast<char*>(memory->data()) + 4, 4, (group.rank() + 5) % 6);
    group.wait_sends(*stream);
    stream->synchronize();
    EXPECT_THROW(group.send(*stream, memory->data(), 4, (next + 1) % 6), std::logic_error);
  });
  EXPECT_EQ(most, 6 + 2 * 6) << "one of all, and two of each pair";
  EXPECT_EQ(emulation::communicators(), 0);
  EXPECT_FALSE(emulation::ends_waited_in_a_circle());
}

TEST(NcclPairs, AreSharedWithGroupsThatAreSplit) {
  run_apart(5, [](Communicator& group, Device& device) {
    const std::vector<RankPair> pairs{{0, 1}, {1, 0}, {2, 3}, {3, 2}};
    const auto pair = group.split(group.rank() == 4 ? -1 : group.rank() / 2);
    group.connect(pairs);
    if (!pair) return;
    const int other = 1 - pair->rank();
    const auto stream = device.make_stream();
    const auto memory = device.allocate(8);
    const float mine = static_cast<float>(group.rank());
    float theirs = -1;
    stream->copy_to_device(memory->data(), &mine, 4);
    pair->send(*stream, memory->data(), 4, other);
    pair->receive(*stream, static_cast<char*>(memory->data()) + 4, 4, other);
    stream->copy_to_host(&theirs, static_cast<char*>(memory->data()) + 4, 4);
    pair->wait_sends(*stream);
    stream->synchronize();
    EXPECT_EQ(theirs, static_cast<float>(group.rank() ^ 1));
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
