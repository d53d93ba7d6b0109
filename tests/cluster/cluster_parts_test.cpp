#include "libalpa/cluster/cluster_parts.h"

#include <gmock/gmock.h>

#include "libalpa/cluster/cost_model.h"
#include "tests/support/index_literals.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Nodes of two devices, all of whose figures are so many times better than those of 1.
Cluster nodes(const std::string& name, int count, int better) {
  Cluster part;
  part.name = part.device = name;
  part.nodes = count;
  part.devices_per_node = 2;
  part.memory_bytes = std::int64_t{better} << 30;
  part.f32_flops_per_s = better * 1e12;
  part.memory_bytes_per_s = better * 1e11;
  part.launch_s = 6e-6 / better;
  part.within_node = {6e-6 / better, better * 1e10};
  part.between_nodes = {6e-5 / better, better * 1e9};
  return part;
}

/// Devices 0 and 1, 2 to 5, 6 and 7.
Cluster three_parts() {
  return cluster_of_parts("three", {nodes("a", 1, 2), nodes("b", 2, 1), nodes("c", 1, 3)});
}

TEST(ClusterParts, AreFoundUnderAMesh) {
  const Cluster cluster = three_parts();
  const auto parts = [&](int first, const MeshShape& mesh) {
    return part_names(cluster, {DeviceIndex(first), mesh});
  };
  EXPECT_THAT(parts(0, {2}), ElementsAre("a"));
  EXPECT_THAT(parts(1, {}), ElementsAre("a"));
  EXPECT_THAT(parts(2, {2, 2}), ElementsAre("b"));
  EXPECT_THAT(parts(4, {}), ElementsAre("b"));
  EXPECT_THAT(parts(7, {}), ElementsAre("c"));
  EXPECT_THAT(parts(1, {2}), ElementsAre("a", "b"));
  EXPECT_THAT(parts(4, {4}), ElementsAre("b", "c"));
  EXPECT_THAT(parts(0, {8}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(part_names(nodes("a", 4, 1), {0_d, {8}}), IsEmpty());
}

TEST(ClusterParts, GiveAMeshTheWorstOfThoseItLiesOn) {
  const Cluster cluster = three_parts();
  const auto expect = [&](int first, const MeshShape& mesh, const std::string& devices, int better) {
    Cluster expected = nodes(devices, 4, better);
    expected.name = "three";
    EXPECT_EQ(cluster_under(cluster, {DeviceIndex(first), mesh}), expected) << devices;
  };
  expect(0, {2}, "a", 2);
  expect(2, {4}, "b", 1);
  expect(6, {}, "c", 3);
  expect(0, {4}, "a + b", 1);
  Cluster whole = cluster;
  whole.parts.clear();
  EXPECT_EQ(cluster_under(cluster, {0_d, {8}}), whole);
}

TEST(ClusterParts, TakeTheWorstOfEachFigureByItself) {
  Cluster far = nodes("far", 1, 1), small = nodes("small", 1, 1);
  far.between_nodes.bytes_per_s /= 2;
  small.memory_bytes /= 2;
  const Cluster cluster = cluster_of_parts("c", {far, small}), best = best_of_parts(cluster);
  EXPECT_EQ(cluster.between_nodes, far.between_nodes);
  EXPECT_EQ(cluster.memory_bytes, small.memory_bytes);
  EXPECT_EQ(best.between_nodes, small.between_nodes);
  EXPECT_EQ(best.memory_bytes, far.memory_bytes);
  EXPECT_THAT(best.parts, IsEmpty());
}

TEST(ClusterParts, ComputeTogether) {
  EXPECT_DOUBLE_EQ(flops_per_s(three_parts(), 8, DType::f32), (2 * 2 + 4 * 1 + 2 * 3) * 1e12);
  EXPECT_DOUBLE_EQ(flops_per_s(three_parts(), 3, DType::f32), (2 * 2 + 1 * 1) * 1e12);
  EXPECT_DOUBLE_EQ(flops_per_s(nodes("a", 4, 1), 3, DType::f32), 3e12);
}

TEST(CostsOnParts, AreThoseOfEqualNodesOfThatKind) {
  const CostModel costs(three_parts());
  const auto on = [&](int first, const MeshShape& mesh) -> const CostModel& {
    return costs.on(DeviceMesh{DeviceIndex(first), mesh});
  };
  const Work work{1e9, 1e6, DType::f32};
  // 6 us / better to launch, 1e9 / 1e12 / better to compute.
  EXPECT_DOUBLE_EQ(on(0, {2}).operator_seconds("mul", work), (6e-6 + 1e-3) / 2);
  EXPECT_DOUBLE_EQ(on(2, {2}).operator_seconds("mul", work), 6e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(on(6, {2}).operator_seconds("mul", work), (6e-6 + 1e-3) / 3);
  EXPECT_DOUBLE_EQ(on(0, {4}).operator_seconds("mul", work), 6e-6 + 1e-3);  // a waits for b
  EXPECT_DOUBLE_EQ(on(6, {2}).copy_seconds(3e8), 2e-6 + 2 * 3e8 / 3e11);
  EXPECT_DOUBLE_EQ(on(6, {2}).send_seconds(true, 3e7), 2e-6 + 1e-3);
  EXPECT_EQ(&on(0, {8}), &costs);
  const CostModel equal(nodes("a", 4, 1));
  EXPECT_EQ(&equal.on(DeviceMesh{2_d, {2}}), &equal);
}

TEST(CostsOnParts, AreExtrapolatedFromMeasurementsEachByItsOwnFigures) {
  Profile profile;
  profile.cluster = nodes("b", 1, 1);
  // Twice the 6 us to launch and 1 ms to compute of the estimate.
  profile.operators["mul f32[1]"] = {.median_s = 2 * (6e-6 + 1e-3), .flops = 1e9, .bytes = 1e6};
  const CostModel costs = CostModel(profile).extrapolated(three_parts());
  const Work work{1e9, 1e6, DType::f32};
  EXPECT_DOUBLE_EQ(costs.on(2_d).operator_seconds("mul f32[1]", work), 2 * (6e-6 + 1e-3));
  EXPECT_DOUBLE_EQ(costs.on(6_d).operator_seconds("mul f32[1]", work), 2 * (6e-6 + 1e-3) / 3);
}

}  // namespace
}  // namespace alpa
