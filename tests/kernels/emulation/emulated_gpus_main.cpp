// Tests of the runtime and the profiler on GPUs without any: their ranks have emulated devices, whose streams
// go on in random order, and talk over NCCL's emulation.
#include <gtest/gtest.h>

#include "libalpa/comm/mpi_session.h"
#include "libalpa/comm/staged_communicator.h"
#include "tests/comm/emulation/emulated_nccl.h"
#include "tests/kernels/emulation/emulated_device.h"
#include "tests/support/test_ranks.h"

int main(int count, char** arguments) {
  using namespace alpa;
  testing::InitGoogleTest(&count, arguments);
  other_ranks = [](int ranks, const RankBody& body) {
    emulation::reset_nccl();
    run_on_threads(ranks, [&](int rank, Communicator& bootstrap) {
      const auto device = emulation::make_device(emulation::Order::random);
      const auto staged = make_staged_communicator(*device, bootstrap.duplicate());
      body(rank, *device, *make_nccl_communicator(*device, *staged));
    });
    EXPECT_FALSE(emulation::ends_waited_in_a_circle());
    EXPECT_EQ(emulation::communicators(), 0);
  };
  return RUN_ALL_TESTS();
}
