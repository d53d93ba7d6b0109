// Clusters some of whose nodes compute nothing and help to add up (Cluster::servers).
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/cluster/cluster_columns.h"
#include "libalpa/cluster/cost_model.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Cluster sixteen_nodes() {
  Cluster cluster{"sixteen", "CPU", 16, 1, 1 << 30, 6e10, 3e10, 0, 8e9, 1e-6, {5e-6, 3e9}, {0, 1e8}};
  return cluster;
}

constexpr double kReducedBytes = 1 << 30;  // beside which latencies are nothing

double all_reduce_s(const CostModel& costs, GroupShape group, double bytes = kReducedBytes) {
  return costs.collective_seconds(CollectiveKind::all_reduce, group, bytes, group.per_node);
}

TEST(Servers, AreTheNodesAfterThoseThatCompute) {
  const Cluster all = with_servers(sixteen_nodes(), 0, 4), some = with_servers(sixteen_nodes(), 8, 4);
  EXPECT_EQ(all.devices(), 12);
  EXPECT_EQ(some.devices(), 8);
  EXPECT_EQ(some.server_devices(), 4);
  EXPECT_EQ(machines_text(some), "8 nodes of 1 device (CPU) and 4 servers");
  EXPECT_NE(cluster_fingerprint(some), cluster_fingerprint(with_servers(sixteen_nodes(), 8, 2)));
}

TEST(Servers, AreRefusedWhereTheyCannotBe) {
  const auto refusal = [](Cluster cluster, int devices, int servers, const char* why) {
    EXPECT_THAT([&] { with_servers(cluster, devices, servers); }, ThrowsMessage<Error>(HasSubstr(why)));
  };
  refusal(sixteen_nodes(), 14, 4, "--servers 4: cluster 'sixteen' has 16 nodes, 14 of these compute");
  refusal(sixteen_nodes(), 0, 15, "has 16 nodes, 1 of these compute");
  refusal(sixteen_nodes(), 0, 99, "has 16 nodes, 0 of these compute");
  Cluster pairs = sixteen_nodes();
  pairs.devices_per_node = 2;
  refusal(pairs, 5, 4, "5 devices do not fill nodes of 2");
  Cluster gpus = sixteen_nodes();
  gpus.kind = DeviceKind::cuda;
  refusal(gpus, 8, 4, "GPUs add up by NCCL");
  Cluster other = sixteen_nodes();
  other.name = "other";
  refusal(cluster_of_parts("both", {sixteen_nodes(), other}), 8, 4, "the nodes of cluster 'both' differ");
}

TEST(Servers, AreKeptInFiles) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "cluster.h5";
  const Cluster cluster = with_servers(sixteen_nodes(), 8, 4);
  H5Writer file(path, "test", "1.0");
  write_cluster(file, cluster);
  file.publish();
  EXPECT_EQ(read_cluster(H5Reader(path, "test", "1.0")), cluster);
}

// The numbers that BytePS's formula gives for eight machines: 1.75, 1.47, 1.27 and 1 times M / B.
TEST(Servers, MakeAllReducesShorterByTheFormula) {
  const double bytes_s = kReducedBytes / 1e8;
  const std::pair<int, double> expected[] = {{1, 112.0 / 70}, {2, 112.0 / 76}, {4, 112.0 / 88}, {8, 1}};
  EXPECT_NEAR(all_reduce_s(CostModel(sixteen_nodes()), {8, 1}) / bytes_s, 1.75, 1e-9);
  for (const auto& [servers, times] : expected)
    EXPECT_NEAR(all_reduce_s(CostModel(with_servers(sixteen_nodes(), 8, servers)), {8, 1}) / bytes_s, times,
                1e-9)
        << servers;
  EXPECT_NEAR(all_reduce_s(CostModel(with_servers(sixteen_nodes(), 4, 8)), {4, 1}) / bytes_s, 1, 1e-9);
}

TEST(Servers, MakeMeasuredAllReducesShorterAlike) {
  Profile profile;
  profile.cluster = sixteen_nodes();
  profile.collectives = {{CollectiveKind::all_reduce, {8, 1}, 1 << 20, 0.1, 0},
                         {CollectiveKind::all_reduce, {8, 1}, 1 << 30, 50, 0}};
  const CostModel served = CostModel(profile).extrapolated(with_servers(profile.cluster, 8, 8));
  EXPECT_NEAR(all_reduce_s(served, {8, 1}), 50 / 1.75, 1e-9);
}

TEST(Servers, HelpWithLongSumsOverAllDevicesAlone) {
  const Cluster cluster = with_servers(sixteen_nodes(), 8, 8);
  const CostModel served(cluster), plain(sixteen_nodes());
  for (const GroupShape group : {GroupShape{4, 1}, {2, 1}})
    EXPECT_EQ(all_reduce_s(served, group), all_reduce_s(plain, group));
  const double gathered = kGatheredAllReduceBytes / 8;
  EXPECT_EQ(all_reduce_s(served, {8, 1}, gathered), all_reduce_s(plain, {8, 1}, gathered));
  EXPECT_LT(all_reduce_s(served, {8, 1}, gathered + 1), all_reduce_s(plain, {8, 1}, gathered + 1));
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
    EXPECT_EQ(served.collective_seconds(kind, {8, 1}, kReducedBytes, 1),
              plain.collective_seconds(kind, {8, 1}, kReducedBytes, 1));
}

// What the search counts on of a sum's share of a collective (CostModel::all_reduce_share_seconds).
TEST(Servers, LeaveAShareOfASumNoDearerThanAnySum) {
  Cluster cluster = with_servers(sixteen_nodes(), 8, 4);
  cluster.between_nodes.latency_s = 1e-4;
  const CostModel served(cluster);
  constexpr double most = 1 << 24;
  const double share = served.all_reduce_share_seconds({8, 1}, 1000, 1, most);
  for (double bytes = 16; bytes <= most; bytes *= 1.01)
    EXPECT_LE(share, all_reduce_s(served, {8, 1}, bytes) / bytes * 1000 * (1 + 1e-12)) << bytes;
}

}  // namespace
}  // namespace alpa
