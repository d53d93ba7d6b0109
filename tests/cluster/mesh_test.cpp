#include "libalpa/cluster/mesh.h"

#include <gmock/gmock.h>

#include <set>

namespace alpa {
namespace {

using testing::ElementsAre;

std::vector<std::string> shapes(int devices, int per_node, int axes) {
  std::vector<std::string> texts;
  for (const MeshShape& shape : mesh_shapes(devices, per_node, axes)) texts.push_back(mesh_text(shape));
  return texts;
}

TEST(MeshShapes, HaveFewAxesWhoseOrderMattersBetweenNodesOnly) {
  for (const int axes : {1, 2, 3}) {
    EXPECT_THAT(shapes(1, 8, axes), ElementsAre("1"));
    EXPECT_THAT(shapes(2, 8, axes), ElementsAre("2"));
    EXPECT_THAT(shapes(7, 8, axes), ElementsAre("7"));
  }
  EXPECT_THAT(shapes(8, 8, 1), ElementsAre("8"));
  EXPECT_THAT(shapes(8, 8, 2), ElementsAre("8", "2x4"));
  EXPECT_THAT(shapes(8, 4, 2), ElementsAre("8", "2x4", "4x2"));
  EXPECT_THAT(shapes(8, 8, 3), ElementsAre("8", "2x4", "2x2x2"));
  EXPECT_THAT(shapes(8, 4, 3), ElementsAre("8", "2x4", "4x2", "2x2x2"));
  EXPECT_THAT(shapes(24, 24, 3), ElementsAre("24", "2x12", "3x8", "4x6", "2x2x6", "2x3x4"));
  EXPECT_THAT(shapes(64, 8, 3), ElementsAre("64", "8x8", "16x4", "32x2", "8x2x4", "16x2x2"));
}

/// Group shapes along the axes of all these meshes.
std::set<GroupShape> group_shapes(int devices, int per_node, int axes) {
  std::set<GroupShape> groups;
  for (const MeshShape& shape : mesh_shapes(devices, per_node, axes))
    for (int axis = 0; axis < std::ssize(shape); ++axis)
      groups.insert(group_shape({DeviceIndex(0), shape}, axis, per_node));
  return groups;
}

// So a profile of meshes of two axes has the collectives of those of three.
TEST(MeshShapes, OfThreeAxesHaveTheGroupsOfThoseOfTwo) {
  for (const int per_node : {4, 6, 8, 16})
    for (const int devices : submesh_sizes(8 * per_node, per_node))
      EXPECT_EQ(group_shapes(devices, per_node, 3), group_shapes(devices, per_node, 2))
          << devices << " on nodes of " << per_node;
}

TEST(SubmeshSizes, ArePowersOfTwoWithinANodeThenWholeNodes) {
  EXPECT_THAT(submesh_sizes(4, 4), ElementsAre(1, 2, 4));
  EXPECT_THAT(submesh_sizes(6, 6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(submesh_sizes(24, 8), ElementsAre(1, 2, 4, 8, 16, 24));
  EXPECT_THAT(submesh_sizes(12, 6), ElementsAre(1, 2, 6, 12));
}

TEST(GroupShape, CountsNodesAndMembersOnEach) {
  const struct {
    MeshShape mesh;
    int axis, nodes, per_node;
  } table[] = {{{4}, 0, 1, 4},       {{2, 4}, 0, 2, 1},    {{2, 4}, 1, 1, 4},    {{8}, 0, 2, 4},
               {{4, 2}, 0, 2, 2},    {{2, 2, 2}, 0, 2, 1}, {{2, 2, 2}, 1, 1, 2}, {{2, 2, 2}, 2, 1, 2},
               {{2, 2, 4}, 1, 2, 1}, {{2, 4, 2}, 1, 2, 2}, {{4, 2, 2}, 0, 4, 1}};
  for (const auto& row : table)
    EXPECT_EQ(group_shape({DeviceIndex(0), row.mesh}, row.axis, 4), (GroupShape{row.nodes, row.per_node}))
        << mesh_text(row.mesh);
}

/// Member by member.
GroupShape counted(const DeviceMesh& mesh, int axis, int devices_per_node) {
  const std::vector<DeviceIndex> members = group_of(mesh, {axis}, mesh.first_device);
  std::set<int> nodes;
  for (const DeviceIndex device : members) nodes.insert(device / devices_per_node);
  const int count = static_cast<int>(nodes.size());
  return {count, (static_cast<int>(members.size()) + count - 1) / count};
}

TEST(GroupShape, IsThatOfItsMembersWhereverTheMeshBegins) {
  for (const MeshShape& shape : {MeshShape{6}, {2, 3}, {3, 4}, {2, 2, 2}, {5, 3}, {2, 2, 4}, {2, 3, 2}})
    for (int axis = 0; axis < std::ssize(shape); ++axis)
      for (const int per_node : {1, 2, 3, 4, 8, 64})
        for (DeviceIndex first(0); first < 9; ++first)
          EXPECT_EQ(group_shape({first, shape}, axis, per_node), counted({first, shape}, axis, per_node))
              << mesh_text(shape) << " axis " << axis << " at " << first << " of nodes of " << per_node;
}

}  // namespace
}  // namespace alpa
