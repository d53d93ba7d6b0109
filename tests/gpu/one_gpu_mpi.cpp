// NCCL over MPI ranks that share one GPU. NCCL refuses that on one node, so each rank names a node of its
// own; they reach each other over the loopback interface. This shows values and order, not speed.
#include <cstdlib>

#include "libalpa/base/error.h"
#include "tests/comm/communicator_conformance.h"
#include "tests/mpi_main.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class NcclOnOneGpu : public testing::Test {
 protected:
  void SetUp() override {
    const MpiSession& session = mpi_session();
    setenv("NCCL_HOSTID", ("rank" + std::to_string(session.rank())).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    if (visible_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device is visible here";
    device = make_cuda_device(0);
    group = make_nccl_communicator(*device, *session.make_communicator(*device));
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> group;
};

TEST_F(NcclOnOneGpu, HoldsWhatEveryCommunicatorPromises) {
  const auto stream = device->make_stream();
  conformance::connect_to_all(*group);
  conformance::Rank rank{*group, *device, *stream, false, conformance::kPieces};
  conformance::run_all_cases(rank);
}

TEST_F(NcclOnOneGpu, PlansOfTwoRanksHaveTheLossesOfTheCpu) {
  constexpr int kSteps = 5;  // collectives of ranks that take turns on a GPU last milliseconds
  const TinyCurve cpu = TinyTraining({"gpt", "serial", 1, 1}).run_on_threads(kSteps);
  for (const TinyCase& plan : std::vector<TinyCase>{
           {"gpt", "data-parallel", 2, 1}, {"gpt", "zero-3", 2, 2}, {"gpt", "inter-only", 2, 4}}) {
    SCOPED_TRACE(plan.name());
    const TinyCurve gpu = TinyTraining(plan).run(kSteps, *device, *group);
    for (std::size_t i = 0; i < kSteps; ++i)  // as GpuTraining
      EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-4 * cpu.losses[i]) << "step " << i;
  }
}

}  // namespace
}  // namespace alpa
