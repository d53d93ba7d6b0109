#include "libalpa/cluster/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/support/index_literals.h"

namespace alpa {
namespace {

constexpr double kBytes = 1 << 30;  // beside which latencies are nothing

Cluster v100() { return read_cluster(ALPA_SOURCE_DIR "/configs/clusters/p3.16xlarge-8.toml"); }

/// Bytes that devices send to others of their node, and that leave each node, counted message by message.
struct Sent {
  std::map<int, double> within, out_of_node;  ///< by device; by node

  void send(const Cluster& cluster, int from, int to, double bytes) {
    const int node = from / cluster.devices_per_node;
    if (node == to / cluster.devices_per_node)
      within[from] += bytes;
    else
      out_of_node[node] += bytes;
  }

  double seconds(const Cluster& cluster) const {
    double most = 0;
    for (const auto& [device, bytes] : within) most = std::max(most, bytes / cluster.within_node.bytes_per_s);
    for (const auto& [node, bytes] : out_of_node)
      most = std::max(most, bytes / cluster.between_nodes.bytes_per_s);  // of its one interface
    return most;
  }
};

/// Every group of a mesh axis at once, by the algorithms that libalpa/comm/collectives.h describes: pieces go
/// round within nodes, then between the devices of the same place on their nodes.
Sent counted(const Cluster& cluster, CollectiveKind kind, const MeshShape& shape, int axis) {
  const DeviceMesh mesh{0_d, shape};
  Sent sent;
  for (DeviceIndex device = 0_d; device < device_count(shape); ++device) {
    const std::vector<DeviceIndex> group = group_of(mesh, {axis}, device);
    std::map<int, std::vector<int>> members;  // by node
    for (const DeviceIndex member : group) members[member / cluster.devices_per_node].push_back(member);
    const std::vector<int>& near = members.at(device / cluster.devices_per_node);
    const auto place = std::find(near.begin(), near.end(), static_cast<int>(device)) - near.begin();
    const double devices = static_cast<double>(group.size()),
                 share = kBytes / static_cast<double>(near.size());
    if (kind == CollectiveKind::all_to_all) {
      for (const DeviceIndex other : group)
        if (other != device) sent.send(cluster, device, other, kBytes / devices);
      continue;
    }
    const int passes = kind == CollectiveKind::all_reduce ? 2 : 1;  // there and back
    for (const int other : near)
      if (other != device) sent.send(cluster, device, other, passes * share);
    for (const auto& [node, theirs] : members)
      if (node != device / cluster.devices_per_node)
        sent.send(cluster, device, theirs[static_cast<std::size_t>(place)], passes * kBytes / devices);
  }
  return sent;
}

TEST(CostModel, PricesCollectivesByTheBytesOfAllGroupsThatRunTogether) {
  const Cluster cluster = v100();
  const CostModel costs(cluster);
  for (const MeshShape& shape :
       {MeshShape{8, 8}, MeshShape{64}, MeshShape{4, 16}, MeshShape{16, 4}, MeshShape{2, 2, 2},
        MeshShape{2, 2, 4}, MeshShape{8, 2, 4}, MeshShape{16, 2, 2}, MeshShape{2, 4, 8}, MeshShape{2, 16, 2}})
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
        const double priced =
            costs.collective_seconds(kind, group_shape({0_d, shape}, axis, cluster.devices_per_node), kBytes,
                                     cluster.devices_per_node);
        const double expected = counted(cluster, kind, shape, axis).seconds(cluster);
        EXPECT_NEAR(priced, expected, 0.01 * expected) << mesh_text(shape) << " axis " << axis;
      }
}

// What a node's sum lacks of all others' must come in, and theirs of it go out: (N-1)/N of the tensor each
// time.
TEST(CostModel, OfAnAllReduceOfAllDevicesIsWhatTheInterfaceNeeds) {
  const Cluster cluster = v100();
  const double least = 2 * 7.0 / 8 * kBytes / cluster.between_nodes.bytes_per_s;
  const double priced = CostModel(cluster).collective_seconds(CollectiveKind::all_reduce, {8, 8}, kBytes, 8);
  EXPECT_GE(priced, least);
  EXPECT_LE(priced, 1.1 * least);
}

TEST(CostModel, SharesInterfacesAmongTheDevicesThatUseThem) {
  Cluster cluster = v100();
  cluster.between_nodes.latency_s = 0;
  const auto arrival = [&](int nics, int active, int different) {
    cluster.nics_per_node = nics;
    return CostModel(cluster).arrival_seconds(kBytes, different, active) /
           (kBytes / cluster.between_nodes.bytes_per_s);
  };
  EXPECT_DOUBLE_EQ(arrival(1, 8, 8), 8);
  EXPECT_DOUBLE_EQ(arrival(1, 2, 2), 2);
  EXPECT_DOUBLE_EQ(arrival(4, 8, 8), 2);
  EXPECT_DOUBLE_EQ(arrival(4, 1, 1), 1);
  EXPECT_DOUBLE_EQ(arrival(8, 8, 8), 1);
  EXPECT_DOUBLE_EQ(arrival(3, 8, 8), 3);  // of three, one has two devices only
  EXPECT_DOUBLE_EQ(arrival(1, 8, 1), 1);  // what all of them get comes once
  EXPECT_DOUBLE_EQ(arrival(1, 8, 4), 4);
  EXPECT_DOUBLE_EQ(arrival(4, 8, 1), 0.25);  // a part over each interface
}

// A profile's messages were timed with all devices of a node at it, so nothing is added for those beside
// them.
TEST(CostModel, AddsNothingToWhatWasMeasuredTogether) {
  Profile profile;
  profile.cluster = v100();
  profile.cluster.nics_per_node = profile.cluster.devices_per_node;  // as probing says
  profile.collectives = {{CollectiveKind::send, {2, 1}, 1 << 20, 0.003},
                         {CollectiveKind::send, {2, 1}, 1 << 22, 0.012}};
  EXPECT_DOUBLE_EQ(CostModel(profile).arrival_seconds(1 << 22, 8, 8), 0.012);
}

struct AllReduceCosts {
  CostModel costs;
  GroupShape group;
  std::set<std::int64_t> sizes = {};  ///< at which a byte may take the least
};

/// As fast and as slow as they come: between some sizes the seconds fall with the bytes.
AllReduceCosts random_all_reduces(std::mt19937& random) {
  std::uniform_real_distribution<double> power(-7, -2);
  std::uniform_int_distribution<std::int64_t> size(0, 1 << 24);
  const GroupShape group{1, 8};
  Profile profile;
  profile.cluster = v100();
  std::set<std::int64_t> sizes;
  for (std::size_t count = 1 + random() % 6; sizes.size() < count;) sizes.insert(size(random));
  for (const std::int64_t bytes : sizes)
    profile.collectives.push_back({CollectiveKind::all_reduce, group, bytes, std::pow(10, power(random))});
  return {CostModel(profile), group, sizes};
}

// So the sums of this, one by one, bound what all take in whatever buckets. More would be no bound: some
// size takes no longer.
TEST(SharesOfAllReduces, AddUpToNoMoreThanThatTakes) {
  std::mt19937 random(7);
  std::vector<AllReduceCosts> cases;
  for (const GroupShape& group : {GroupShape{1, 2}, GroupShape{1, 3}, GroupShape{1, 8}, GroupShape{8, 8}})
    for (int latency = 0; latency < 3; ++latency) {
      Cluster cluster = v100();
      cluster.within_node.latency_s *= latency * latency;
      cases.push_back({CostModel(cluster), group, {kGatheredAllReduceBytes / group.size()}});
    }
  for (int drawn = 0; drawn < 100; ++drawn) cases.push_back(random_all_reduces(random));
  std::uniform_real_distribution<double> power(0, 7);
  for (const auto& [costs, group, sizes] : cases) {
    const auto whole_s = [&](double bytes) {
      return costs.collective_seconds(CollectiveKind::all_reduce, group, bytes, 8);
    };
    for (int partition = 0; partition < 100; ++partition) {
      double most = 0, bucket = 0, buckets_s = 0;
      std::vector<double> parts;
      for (int part = 0; part < 8; ++part) {
        parts.push_back(std::floor(std::pow(10, power(random))));
        most += parts.back();
        bucket += parts.back();
        if (part == 7 || random() % 2 == 0) buckets_s += whole_s(std::exchange(bucket, 0));
      }
      double shares_s = 0, least_s = whole_s(most) / most;  // of a byte
      for (const double part : parts) shares_s += costs.all_reduce_share_seconds(group, part, 8, most);
      EXPECT_LE(shares_s, buckets_s * (1 + 1e-9));
      for (const std::int64_t size : sizes)
        if (const auto bytes = static_cast<double>(size); 0 < bytes && bytes < most)
          least_s = std::min(least_s, whole_s(bytes) / bytes);
      EXPECT_NEAR(shares_s, least_s * most, 1e-9 * shares_s);
    }
  }
}

/// An operator and an all-reduce within a node, that took three and two times what they are estimated to.
Profile slower_than_estimated(const Cluster& cluster) {
  const CostModel estimates(cluster);
  const Work work{1e12, 1e6, DType::f32};
  Profile profile;
  profile.cluster = cluster;
  profile.operators["einsum f32[8]"] = {
      .median_s = 3 * estimates.operator_seconds("", work), .flops = work.flops, .bytes = work.bytes};
  profile.collectives = {{CollectiveKind::all_reduce,
                          {1, 8},
                          1 << 30,
                          2 * estimates.collective_seconds(CollectiveKind::all_reduce, {1, 8}, kBytes, 8)}};
  return profile;
}

TEST(ExtrapolatedCosts, AreTheSameForTheSameCluster) {
  const Profile profile = slower_than_estimated(v100());
  const CostModel measured(profile), same = measured.extrapolated(v100());
  EXPECT_TRUE(same.is_measured());
  EXPECT_EQ(same.operator_seconds("einsum f32[8]", {}), profile.operators.at("einsum f32[8]").median_s);
  EXPECT_EQ(same.collective_seconds(CollectiveKind::all_reduce, {1, 8}, kBytes, 8),
            profile.collectives[0].median_s);
  const Work other{3e12, 1e6, DType::f32};  // not measured, so by the operator's slowdown
  EXPECT_EQ(same.operator_seconds("einsum f32[9]", other), measured.operator_seconds("einsum f32[9]", other));
}

TEST(ExtrapolatedCosts, ChangeByAsMuchAsTheirEstimates) {
  Cluster faster = v100();
  faster.f32_flops_per_s *= 4;
  faster.within_node.bytes_per_s *= 2;
  const CostModel costs = CostModel(slower_than_estimated(v100())).extrapolated(faster), estimates(faster);
  // The last bits of a product of a time and a ratio of times may differ.
  EXPECT_DOUBLE_EQ(costs.operator_seconds("einsum f32[8]", {}),
                   3 * estimates.operator_seconds("", {1e12, 1e6, DType::f32}));
  EXPECT_DOUBLE_EQ(costs.collective_seconds(CollectiveKind::all_reduce, {1, 8}, kBytes, 8),
                   2 * estimates.collective_seconds(CollectiveKind::all_reduce, {1, 8}, kBytes, 8));
}

}  // namespace
}  // namespace alpa
