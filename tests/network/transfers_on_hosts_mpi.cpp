// What passes the network interfaces of two emulated hosts of two ranks where a tensor goes from one mesh to
// another: by each strategy what its messages say.
#include <gtest/gtest.h>

#include "tests/mpi_main.h"
#include "tests/network/interface_bytes.h"
#include "tests/network/one_transfer.h"

namespace alpa {
namespace {

constexpr int kRanksOnHost = 2;

Cluster two_hosts() {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.devices_per_node = kRanksOnHost;
  cluster.within_node = {1e-6, 2e9};
  cluster.between_nodes = {1e-5, 1.25e8};
  return cluster;
}

class TransfersOnHosts : public testing::TestWithParam<TransferStrategy> {
 protected:
  /// Of 4 MiB that lie on the first host so, and are needed on the second so. Holds what leaves this host to
  /// `times` the tensor where it is the first, and to next to nothing where it is the second.
  void expect_traffic(const std::string& from, const std::string& to, double times) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    const std::unique_ptr<Communicator> world = mpi_session().make_communicator(*device);
    world->set_nodes(consecutive_nodes(world->size(), kRanksOnHost));
    const Transfer transfer{{DType::f32, {2, 1 << 19}},
                            {DeviceIndex(0), {2}},
                            {DeviceIndex(2), {2}},
                            parse_spec(from),
                            parse_spec(to)};
    const TransferWay way{GetParam(), GetParam() == TransferStrategy::broadcast ? 4 : 1};
    OneTransfer one(transfer, transfer_route(transfer, way, two_hosts()), *device, *world, kRanksOnHost);
    one.run();  // makes connections
    world->barrier();
    const double before = interface_bytes();
    world->barrier();  // nobody of the host has begun before that
    one.run();
    world->barrier();
    const double left = interface_bytes() - before;
    world->barrier();
    EXPECT_TRUE(one.has_it());
    const double payload = times * static_cast<double>(byte_count(transfer.whole));
    if (world->rank() < kRanksOnHost)
      expect_left(left, payload);
    else
      EXPECT_LT(left, 0.05 * payload);  // acknowledgements
  }
};

TEST_P(TransfersOnHosts, OfHalvesIsTheTensorOnce) { expect_traffic("S0R", "S0R", 1); }

TEST_P(TransfersOnHosts, OfHalvesCutOtherwiseIsTheTensorOnce) { expect_traffic("S0R", "RS0", 1); }

// Both ranks of the second host need all of it: each gets it by the network, or one from the other.
TEST_P(TransfersOnHosts, OfWhatAllNeedIsTheTensorOnceUnlessItIsSentToEach) {
  expect_traffic("S0R", "RR", GetParam() == TransferStrategy::send_receive ? 2 : 1);
}

INSTANTIATE_TEST_SUITE_P(Strategies, TransfersOnHosts,
                         testing::Values(TransferStrategy::send_receive, TransferStrategy::local_all_gather,
                                         TransferStrategy::global_all_gather, TransferStrategy::broadcast),
                         [](const auto& strategy) {
                           std::string name = transfer_strategy_name(strategy.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace alpa
