#include "libalpa/sharding/transfer.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/index_literals.h"

namespace alpa {
namespace {

/// Every element of every destination tile arrives exactly once, from a device that holds it.
void expect_complete(const Transfer& transfer) {
  const Shape& whole = transfer.whole.shape;
  const auto pieces = transfer_pieces(transfer, 2);
  const Shape tile = tile_shape(whole, transfer.to, transfer.to_mesh.shape);
  const Shape held = tile_shape(whole, transfer.from, transfer.from_mesh.shape);
  for (DeviceIndex device = transfer.to_mesh.first_device;
       device < transfer.to_mesh.first_device + device_count(transfer.to_mesh.shape); ++device) {
    std::int64_t elements = 0;
    for (const TransferPiece& piece : pieces) {
      if (piece.to_device != device) continue;
      elements += element_count(piece.extent);
      const Shape source = tile_origin(whole, transfer.from, transfer.from_mesh.shape,
                                       coordinate_of(transfer.from_mesh, piece.from_device));
      for (std::size_t d = 0; d < whole.size(); ++d) {
        EXPECT_GE(piece.origin[d], source[d]);
        EXPECT_LE(piece.origin[d] + piece.extent[d], source[d] + held[d]);
      }
    }
    EXPECT_EQ(elements, element_count(tile)) << "device " << device;
  }
}

TEST(TransferPieces, CoverEveryDestinationTileOnce) {
  for (const char* from : {"RR", "S0R", "RS1", "S0S1", "S01R"})
    for (const char* to : {"RR", "S0R", "RS0", "S1S0", "RS01"})
      expect_complete({{DType::f32, {8, 8}}, {0_d, {2, 2}}, {4_d, {2, 2}}, parse_spec(from), parse_spec(to)});
}

TEST(TransferPieces, SendersOfCopiesTakeTurns) {
  const auto pieces =
      transfer_pieces({{DType::f32, {8}}, {0_d, {2}}, {2_d, {2}}, parse_spec("R"), parse_spec("R")}, 1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].from_device, 0);
  EXPECT_EQ(pieces[1].from_device, 1);
}

TEST(ArrivingLayout, IsSplitOverTheDevicesOfANodeThatHoldTheSame) {
  const auto arriving = [](const Shape& whole, const char* to, const MeshShape& mesh, int per_node) {
    return spec_text(arriving_layout(whole, parse_spec(to), mesh, per_node));
  };
  EXPECT_EQ(arriving({8, 8}, "RR", {4}, 4), "S0R");
  EXPECT_EQ(arriving({8, 8}, "RR", {2, 4}, 4), "S1R");  // axis 0 is between nodes
  EXPECT_EQ(arriving({8, 8}, "RR", {2, 2}, 4), "S01R");
  EXPECT_EQ(arriving({8, 8}, "S1R", {2, 2}, 4),
            "S1R");  // along axis 0 there would be no pieces to put together
  EXPECT_EQ(arriving({8, 8}, "RS1", {2, 2}, 4), "S0S1");
  EXPECT_EQ(arriving({8, 8}, "S0R", {2, 2}, 4), "S01R");
  EXPECT_EQ(arriving({6, 8}, "RR", {4}, 4), "RR");  // 6 rows for 4 devices
  EXPECT_EQ(arriving({}, "-", {4}, 4), "-");
}

/// A node of two devices.
Cluster node(const Link& between_nodes, int nics) {
  Cluster node;
  node.name = fmt::format("{} NICs", nics);
  node.devices_per_node = 2;
  node.memory_bytes_per_s = node.f32_flops_per_s = 1e12;
  node.within_node = {1e-6, 1e10};
  node.between_nodes = between_nodes;
  node.nics_per_node = nics;
  return node;
}

TEST(TransferSeconds, BetweenUnlikeNodesAreThoseOfTheSlowerEnd) {
  const Cluster slow = node({4e-5, 5e8}, 1), fast = node({1e-5, 1e9}, 2);
  const CostModel costs(cluster_of_parts("pair", {slow, fast}));
  const auto seconds = [&](std::int64_t elements, DeviceIndex from, DeviceIndex to) {
    const TensorType whole{DType::f32, {elements}};
    const ShardingSpec split = parse_spec("S0");
    return transfer_seconds(transfer_pieces({whole, {from, {2}}, {to, {2}}, split, split}, 2), DType::f32,
                            costs);
  };
  for (const auto& [from, to] : {std::pair{0_d, 2_d}, {2_d, 0_d}}) {
    EXPECT_DOUBLE_EQ(seconds(8, from, to), 4e-5 + 16 / 5e8);    // two messages at once: the slow latency
    EXPECT_DOUBLE_EQ(seconds(2'000'000, from, to), 8e6 / 5e8);  // both over the slow node's one interface
  }
  const CostModel equal([&] {
    Cluster two = fast;
    two.nodes = 2;
    return two;
  }());
  const TensorType whole{DType::f32, {2'000'000}};
  const auto pieces = transfer_pieces({whole, {0_d, {2}}, {2_d, {2}}, parse_spec("S0"), parse_spec("S0")}, 2);
  EXPECT_DOUBLE_EQ(transfer_seconds(pieces, DType::f32, equal), 1e-5 + 4e6 / 1e9);  // an interface for each
}

}  // namespace
}  // namespace alpa
