#include "libalpa/profiler/probe.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/ops/catalog.h"
#include "tests/profiler/fake_instrument.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

Machines machines(int nodes, int devices_per_node) {
  Machines all{"here", "CPU, 1 thread", nodes, devices_per_node, 1 << 30, {}};
  for (int n = 0; n < nodes; ++n) all.node_names.push_back("node" + std::to_string(n));
  return all;
}

/// 1e11 FLOP/s, 1e10 B/s and 1 us per operator; messages of 5 us and 2e9 B/s within a node, 50 us and 1e9 B/s
/// between.
class Probe : public testing::Test {
 protected:
  Probe() {
    instrument_.operator_s = [](const OperatorCase& each) {
      return 1e-6 + std::max(each.flops / 1e11, each.bytes / 1e10);
    };
    instrument_.collective_s = [](const CollectiveCase& each) {
      const double bytes = static_cast<double>(each.bytes);
      return each.group.nodes > 1 ? 50e-6 + bytes / 1e9 : 5e-6 + bytes / 2e9;
    };
  }

  Cluster cluster_of(const Machines& all) {
    instrument_.ranks = all.nodes * all.devices_per_node;
    return probe_cluster(all, probe_rates(op_catalog(), instrument_), op_catalog(), instrument_);
  }

  FakeInstrument instrument_;
};

TEST_F(Probe, FindsTheRatesOfTheDevicesAndTheirLinks) {
  const Cluster cluster = cluster_of(machines(2, 2));
  EXPECT_EQ(cluster.device, "CPU, 1 thread");
  EXPECT_EQ(cluster.devices(), 4);
  EXPECT_EQ(cluster.memory_bytes, 1 << 30);
  // The 1 us of a launch is left in the long samples.
  EXPECT_NEAR(cluster.f32_flops_per_s, 1e11, 1e9);
  EXPECT_NEAR(cluster.bf16_flops_per_s, 1e11, 1e9);
  EXPECT_NEAR(cluster.memory_bytes_per_s, 1e10, 1e8);
  EXPECT_NEAR(cluster.launch_s, 1e-6, 1e-8);
  // The latency is that of a message of 1 KiB.
  EXPECT_NEAR(cluster.within_node.latency_s, 5.5e-6, 0.1e-6);
  EXPECT_NEAR(cluster.within_node.bytes_per_s, 2e9, 1e6);
  EXPECT_NEAR(cluster.between_nodes.latency_s, 51e-6, 0.1e-6);
  EXPECT_NEAR(cluster.between_nodes.bytes_per_s, 1e9, 1e6);
  EXPECT_EQ(cluster.nics_per_node, 2);  // messages at once take no longer than one
}

TEST_F(Probe, FindsHowManyDevicesShareANetworkInterface) {
  for (const int sharing : {1, 2, 4}) {
    instrument_.collective_s = [sharing](const CollectiveCase& each) {
      const int at_once = each.kind == CollectiveKind::shift ? sharing : 1;
      return 50e-6 + at_once * static_cast<double>(each.bytes) / 1.1e9;
    };
    EXPECT_EQ(cluster_of(machines(2, 4)).nics_per_node, 4 / sharing);
  }
}

TEST_F(Probe, GivesADeviceWithoutANeighbourTheNearestLinkThereIs) {
  const Cluster apart = cluster_of(machines(2, 1));
  EXPECT_EQ(apart.within_node, apart.between_nodes);
  const Cluster together = cluster_of(machines(1, 2));
  EXPECT_EQ(together.between_nodes, together.within_node);
  EXPECT_GT(cluster_of(machines(1, 1)).within_node.bytes_per_s, 1e9);
}

TEST_F(Probe, FindsHowMuchLongerComputationTakesBesideCommunication) {
  instrument_.slowdown = 1.5;
  EXPECT_DOUBLE_EQ(cluster_of(machines(2, 2)).overlap_slowdown, 1.5);
  EXPECT_EQ(instrument_.asked.back(),
            "einsum equation='m k, k n -> m n' f32[1024x1024] f32[1024x1024] beside sums");  // 21 ms
  EXPECT_EQ(cluster_of(machines(1, 1)).overlap_slowdown, 1);  // nothing to communicate with
}

TEST_F(Probe, FindsAtWhichRateThingsAreMovedBetweenMemories) {
  instrument_.moved_per_s = 2.5e9;
  EXPECT_DOUBLE_EQ(cluster_of(machines(1, 1)).host_bytes_per_s, 2.5e9);
  instrument_.broken = "moves";
  EXPECT_EQ(cluster_of(machines(1, 1)).host_bytes_per_s, 0);  // not known
}

TEST_F(Probe, TakesForNoSlowdownWhatRepetitionsDifferBy) {
  for (const double within_noise : {0.8, 1.0, 1.09}) {  // each rank's repetitions differ by 5 %, in both
    instrument_.slowdown = within_noise;
    EXPECT_EQ(cluster_of(machines(1, 2)).overlap_slowdown, 1);
  }
}

TEST_F(Probe, LeavesTheSlowdownOpenWhereItCannotBeMeasured) {
  instrument_.slowdown = 1.5;
  instrument_.broken = "einsum equation='m k, k n -> m n' f32[1024x1024] f32[1024x1024] beside sums";
  EXPECT_EQ(cluster_of(machines(1, 2)).overlap_slowdown, 1);
}

TEST_F(Probe, FindsThatDevicesDoNotComputeInAType) {
  instrument_.broken = "einsum equation='m k, k n -> m n' bf16[256x256] bf16[256x256]";
  const Cluster cluster = cluster_of(machines(1, 2));
  EXPECT_EQ(cluster.bf16_flops_per_s, 0);
  EXPECT_NEAR(cluster.f16_flops_per_s, 1e11, 1e9);
}

TEST_F(Probe, RefusesADeviceThatCannotMultiply) {
  instrument_.broken = "einsum equation='m k, k n -> m n' f32[256x256] f32[256x256]";
  EXPECT_THAT(
      [&] { probe_rates(op_catalog(), instrument_); },
      ThrowsMessage<Error>(AllOf(HasSubstr("cannot measure 'einsum"), HasSubstr("no memory is left"))));
}

TEST(SameMachines, AreTheSameDevicesInTheSameNumbers) {
  const Machines all = machines(2, 4);
  Cluster cluster;
  cluster.device = all.device;
  cluster.nodes = 2;
  cluster.devices_per_node = 4;
  EXPECT_TRUE(same_machines(cluster, all));
  cluster.nodes = 4;
  cluster.devices_per_node = 2;
  EXPECT_FALSE(same_machines(cluster, all));
  cluster.nodes = 2;
  cluster.devices_per_node = 4;
  cluster.device = "CPU, 2 threads";
  EXPECT_FALSE(same_machines(cluster, all));
}

TEST(NodeTable, MarksTheNodeThatIsMoreThanATenthBelowTheMedian) {
  RankRates rates;
  for (int rank = 0; rank < 8; ++rank) {
    rates.f32_flops_per_s.push_back(rank / 2 == 2 ? 44e9 : 50e9);  // node 2 computes 12 % below
    rates.bf16_flops_per_s.push_back(20e9);
    rates.memory_bytes_per_s.push_back(rank / 2 == 3 ? 9.2e9 : 10e9);  // node 3 streams 8 % below
  }
  EXPECT_EQ(node_table(node_samples(machines(4, 2), rates)),
            "node     GFLOP/s f32   GFLOP/s bf16       GB/s\n"
            "node0          100.0           40.0      20.00\n"
            "node1          100.0           40.0      20.00\n"
            "node2           88.0           40.0      20.00  computes more than 10 % below the median\n"
            "node3          100.0           40.0      18.40\n");
}

TEST(NodeTable, SaysWhatIsOdd) {
  EXPECT_THAT(
      remarks_on({{"a", 10, 1, 10}, {"b", 10, 1, 8}, {"c", 8, 1, 8}, {"d", 10, 1, 10}, {"e", 10, 1, 10}}),
      testing::ElementsAre("", "streams more than 10 % below the median",
                           "computes and streams more than 10 % below the median", "", ""));
}

}  // namespace
}  // namespace alpa
