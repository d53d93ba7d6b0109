// The conformance cases over MPI, and what only MPI can show.
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_communicator.h"
#include "tests/comm/communicator_conformance.h"
#include "tests/mpi_main.h"

namespace alpa {
namespace {

using conformance::Array;
using conformance::Case;
using conformance::Rank;
using ::testing::HasSubstr;
using ::testing::ValuesIn;

void run_on_world(Device& device, const std::function<void(Rank&)>& body, bool sends_ahead = false) {
  const auto group = mpi_session().make_communicator(device);
  group->set_sends_ahead(sends_ahead);
  const auto stream = device.make_stream();
  Rank rank{*group, device, *stream, true, conformance::kPieces};
  body(rank);
}

class MpiConformance : public ::testing::TestWithParam<Case> {};

TEST_P(MpiConformance, HoldsInHostMemory) { run_on_world(*make_cpu_device(1), GetParam().run); }

TEST_P(MpiConformance, HoldsWhereMessagesAreSentAhead) {
  run_on_world(*make_cpu_device(1), GetParam().run, true);
}

TEST_P(MpiConformance, HoldsThroughStagingMemory) {
  run_on_world(*make_checked_cpu_device(1), GetParam().run);
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiConformance, ValuesIn(conformance::cases()),
                         [](const auto& test) { return test.param.name; });

TEST(MpiConformanceOnGpus, HoldsThroughStagingMemory) {
  if (visible_cuda_devices() == 0)
    GTEST_SKIP() << "no CUDA device is visible here, or this build has no CUDA backend";
  run_on_world(*make_cuda_device(0), conformance::run_all_cases);
}

TEST(NcclConformance, HoldsOverMpiRanks) {
  const MpiSession& session = mpi_session();
  if (visible_cuda_devices() < session.ranks_on_node())
    GTEST_SKIP() << visible_cuda_devices() << " CUDA devices are visible to " << session.ranks_on_node()
                 << " ranks";
  const auto device = make_cuda_device(session.rank_on_node());
  const auto bootstrap = session.make_communicator(*device);
  const auto group = make_nccl_communicator(*device, *bootstrap);
  conformance::connect_to_all(*group);
  const auto stream = device->make_stream();
  Rank rank{*group, *device, *stream, false, conformance::kPieces};
  conformance::run_all_cases(rank);
}

TEST(MpiSession, CountsRanksAndNodes) {
  const MpiSession& session = mpi_session();
  int rank = -1, size = -1;
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  EXPECT_EQ(session.rank(), rank);
  EXPECT_EQ(session.size(), size);
  // The test runs on one node.
  EXPECT_EQ(session.node(), 0);
  EXPECT_EQ(session.nodes(), 1);
  EXPECT_EQ(session.rank_on_node(), rank);
  EXPECT_EQ(session.ranks_on_node(), size);
  cpu_set_t cores;  // nobody bound the ranks apart
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  EXPECT_EQ(session.cores_of_node(), CPU_COUNT(&cores));
  const std::vector<Cores> of_all(static_cast<std::size_t>(size), cores_in(cores));
  EXPECT_EQ(session.core_share().own, core_share(of_all, rank).own);
}

TEST(MpiCommunicator, AMessageOfAnotherSizeIsRefused) {
  const auto device = make_cpu_device(1);
  run_on_world(*device, [](Rank& rank) {
    const Array<float> sent(rank, 100), received(rank, 200);
    for (const std::int64_t bytes : {4, 800}) {
      rank.group.send(rank.stream, sent.data(), sent.bytes(), rank.group.rank());
      EXPECT_THAT([&] { rank.group.receive(rank.stream, received.data(), bytes, rank.group.rank()); },
                  ::testing::ThrowsMessage<Error>(
                      ::testing::AnyOf(HasSubstr("truncated"), HasSubstr("which sent 400"))));
      rank.group.wait_sends(rank.stream);
    }
  });
}

/// Seconds of a core that this process has taken.
double cpu_s() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// From a second on, looks are a hundredth of that apart at most, so they may come to a twentieth of a core if
// each takes half a millisecond.
TEST(MpiCommunicator, AWaitThatHasLastedASecondTakesLessThanATwentiethOfACore) {
  run_on_world(*make_cpu_device(1), [](Rank& rank) {
    using namespace std::chrono_literals;
    char byte = 0;
    rank.group.barrier();
    if (rank.group.rank() == 0) {
      std::this_thread::sleep_for(4s);
      for (int other = 1; other < rank.group.size(); ++other) rank.group.send(rank.stream, &byte, 1, other);
      rank.group.wait_sends(rank.stream);
    } else {
      double used_s = 0;
      std::jthread watch([&](std::stop_token) {
        std::this_thread::sleep_for(1s);
        const double before_s = cpu_s();
        std::this_thread::sleep_for(2s);
        used_s = cpu_s() - before_s;
      });
      rank.group.receive(rank.stream, &byte, 1, 0);
      watch.join();
      EXPECT_LT(used_s, 0.05 * 2);
    }
  });
}

TEST(MpiCommunicator, AgreesBitForBitWithThreads) {
  const std::size_t count = 60013;
  std::vector<float> over_threads;
  run_on_threads(mpi_session().size(), [&](int thread, Communicator& group) {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    Rank rank{group, *device, *stream, true, conformance::kPieces};
    const Array<float> values(rank, conformance::numbers(thread, count));
    group.all_reduce(*stream, values.data(), values.count(), DType::f32, Reduction::sum);
    if (thread == 0) over_threads = values.values();
  });
  const auto device = make_cpu_device(1);
  run_on_world(*device, [&](Rank& rank) {
    const Array<float> values(rank, conformance::numbers(rank.group.rank(), count));
    rank.group.all_reduce(rank.stream, values.data(), values.count(), DType::f32, Reduction::sum);
    EXPECT_TRUE(values.values() == over_threads);
  });
}

TEST(MpiCommunicator, AddsByTheNodesOfThePlanWhereverRanksRun) {
  constexpr std::size_t kCount = 300'007;
  const auto device = make_cpu_device(1);
  run_on_world(*device, [&](Rank& rank) {
    ASSERT_EQ(mpi_session().nodes(), 1);
    rank.group.set_nodes(consecutive_nodes(4, 2));
    std::vector<float> values = conformance::numbers(rank.group.rank(), kCount);
    rank.group.all_reduce(rank.stream, values.data(), std::ssize(values), DType::f32, Reduction::sum);
    EXPECT_TRUE(values == conformance::sum_by_nodes<float>({2, 2}, kCount));
    const SentBytes sent = rank.group.sent();
    EXPECT_NEAR(static_cast<double>(sent.between_nodes), 2 * kCount, 64);
    EXPECT_NEAR(static_cast<double>(sent.within_node), 4 * kCount, 64);
  });
}

TEST(MpiCommunicator, SumsAtOwnersByTheNodesOfThePlan) {
  constexpr std::size_t kCount = 300'007;
  run_on_world(*make_cpu_device(1), [&](Rank& rank) {
    rank.group.set_nodes(consecutive_nodes(4, 2));
    std::vector<float> values = conformance::numbers(rank.group.rank(), kCount);
    const OwnedPiece pieces[] = {{values.data() + 200'000, 4 * 100'007, 1},
                                 {values.data(), 4 * 7, 2},
                                 {values.data() + 7, 4 * 199'993, 1}};
    rank.group.reduce_to_owners(rank.stream, pieces, DType::f32, Reduction::sum);
    rank.group.broadcast_from_owners(rank.stream, pieces);
    EXPECT_TRUE(values == conformance::sum_by_nodes<float>({2, 2}, kCount));
    const std::vector<double> parts{0, 4 * 300'000, 4 * 7, 0};
    const CollectiveTraffic there = owners_traffic(CollectiveKind::reduce_scatter, {2, 2}, parts,
                                                   rank.group.rank()),
                            back =
                                owners_traffic(CollectiveKind::all_gather, {2, 2}, parts, rank.group.rank());
    const SentBytes sent = rank.group.sent();
    EXPECT_EQ(static_cast<double>(sent.within_node), there.within_node + back.within_node);
    EXPECT_EQ(static_cast<double>(sent.between_nodes), there.between_nodes + back.between_nodes);
  });
}

/// Waits of ranks under a watch of their own: the tests' session has none.
class WatchedWait : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> watched(double report_after_s, double timeout_s) {
    const auto watch = std::make_shared<PeerWatch>(
        PeerWatch{HangLimits{report_after_s, timeout_s},
                  std::vector<std::string>{"rank 0 on a", "rank 1 on a", "rank 2 on b", "rank 3 on b"},
                  [this](const std::string& what) { told_ += what + "\n"; }});
    MPI_Comm world = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    return make_mpi_communicator(world, watch);
  }

  const int rank_ = mpi_session().rank();
  const std::unique_ptr<Device> device_ = make_cpu_device(1);
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  std::string told_;
};

TEST_F(WatchedWait, ThatIsLongIsToldWithTheLateRankAndGoesOn) {
  const auto world = watched(0.05, 0);
  // Groups count their own ranks, the watch those of the session.
  const auto pair = world->split(rank_ / 2);
  if (rank_ == 3) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<float> values(256, 1);
  pair->all_reduce(*stream_, values.data(), 256, DType::f32, Reduction::sum);
  EXPECT_EQ(values[255], 2);
  if (rank_ == 2) {
    EXPECT_THAT(told_, HasSubstr("waiting for rank 3 on b for "));
    EXPECT_THAT(told_, HasSubstr(" ms, in all-reduce of 1.00 KiB\n"));
  }
}

TEST_F(WatchedWait, ThatIsTooLongEndsAsALostPeer) {
  const auto world = watched(0, 0.05);
  if (rank_ != 0) return;
  char message = 0;  // that nobody sends
  try {
    world->receive(*stream_, &message, 1, 2);
    ADD_FAILURE() << "received";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::peer);
    EXPECT_THAT(error.what(), HasSubstr("waiting for rank 2 on b for "));
    EXPECT_THAT(error.what(), HasSubstr(", in receive of 1 B"));
  }
}

TEST(AskedToEnd, AWaitEndsSoonThoughItHasNoLimit) {
  PeerWatch watch;
  watch.places = {"rank 0 on a", "rank 1 on a", "rank 2 on b", "rank 3 on b"};
  watch.is_asked_to_end = [] { return true; };
  watch.end_grace_s = 0.05;
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  const auto all = mpi_session().make_communicator(*device, std::make_shared<const PeerWatch>(watch));
  if (mpi_session().rank() != 0) return;
  char message = 0;  // that nobody sends
  EXPECT_THAT([&] { all->receive(*stream, &message, 1, 3); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(HasSubstr("waiting for rank 3 on b for "),
                                                               HasSubstr("when a signal asked to end"))));
}

}  // namespace
}  // namespace alpa
