// The conformance cases on the communicators that live in one process.
#include "tests/comm/communicator_conformance.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/comm/mpi_session.h"

namespace alpa {
namespace {

using conformance::Case;
using ::testing::ValuesIn;

void run_on_thread_ranks(int ranks, const std::function<std::unique_ptr<Device>()>& make_device,
                         const Case& tested) {
  run_on_threads(ranks, [&](int rank, Communicator& group) {
    SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    EXPECT_EQ(group.rank(), rank);
    EXPECT_EQ(group.size(), ranks);
    const auto device = make_device();
    const auto stream = device->make_stream();
    conformance::Rank under_test{group, *device, *stream, true, conformance::kOnePiece};
    tested.run(under_test);
  });
}

class ThreadConformance : public ::testing::TestWithParam<Case> {};

TEST_P(ThreadConformance, HoldsOnOneToFourRanks) {
  for (const int ranks : {1, 2, 3, 4})
    run_on_thread_ranks(
        ranks, [] { return make_cpu_device(1); }, GetParam());
}

TEST_P(ThreadConformance, HoldsOnCheckedMemory) {
  run_on_thread_ranks(
      3, [] { return make_checked_cpu_device(1); }, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadConformance, ValuesIn(conformance::cases()),
                         [](const auto& test) { return test.param.name; });

class SelfConformance : public ::testing::TestWithParam<Case> {};

TEST_P(SelfConformance, Holds) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(make_cpu_device(1));
  devices.push_back(make_checked_cpu_device(1));
  if (visible_cuda_devices() > 0) devices.push_back(make_cuda_device(0));
  for (const auto& device : devices) {
    SCOPED_TRACE(device->description());
    const auto stream = device->make_stream();
    const auto group = make_self_communicator();
    EXPECT_EQ(group->rank(), 0);
    EXPECT_EQ(group->size(), 1);
    conformance::Rank under_test{*group, *device, *stream, true, conformance::kOnePiece};
    GetParam().run(under_test);
  }
}

INSTANTIATE_TEST_SUITE_P(Self, SelfConformance, ValuesIn(conformance::cases()),
                         [](const auto& test) { return test.param.name; });

TEST(NcclConformance, HoldsOnOneRank) {
  if (visible_cuda_devices() == 0)
    GTEST_SKIP() << "no CUDA device is visible here, or this build has no CUDA backend";
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream();
  const auto bootstrap = make_self_communicator();
  const auto group = make_nccl_communicator(*device, *bootstrap);
  conformance::connect_to_all(*group);
  conformance::Rank under_test{*group, *device, *stream, false, conformance::kPieces};
  conformance::run_all_cases(under_test);
}

}  // namespace
}  // namespace alpa
