#include "libalpa/cluster/mesh.h"

#include <gmock/gmock.h>

#include <set>

namespace alpa {
namespace {

using testing::ElementsAre;

std::vector<std::string> shapes(int devices, int per_node) {
  std::vector<std::string> texts;
  for (const MeshShape& shape : mesh_shapes(devices, per_node)) texts.push_back(mesh_text(shape));
  return texts;
}

TEST(MeshShapes, AreOneAxisAndTwoWithTheOrderThatMattersBetweenNodesOnly) {
  EXPECT_THAT(shapes(1, 8), ElementsAre("1"));
  EXPECT_THAT(shapes(2, 8), ElementsAre("2"));
  EXPECT_THAT(shapes(8, 8), ElementsAre("8", "2x4"));
  EXPECT_THAT(shapes(8, 4), ElementsAre("8", "2x4", "4x2"));
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
  } table[] = {{{4}, 0, 1, 4}, {{2, 4}, 0, 2, 1}, {{2, 4}, 1, 1, 4}, {{8}, 0, 2, 4}, {{4, 2}, 0, 2, 2}};
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
  for (const MeshShape& shape : {MeshShape{6}, {2, 3}, {3, 4}, {2, 2, 2}, {5, 3}})
    for (int axis = 0; axis < std::ssize(shape); ++axis)
      for (const int per_node : {1, 2, 3, 4, 8, 64})
        for (DeviceIndex first(0); first < 9; ++first)
          EXPECT_EQ(group_shape({first, shape}, axis, per_node), counted({first, shape}, axis, per_node))
              << mesh_text(shape) << " axis " << axis << " at " << first << " of nodes of " << per_node;
}

}  // namespace
}  // namespace alpa
