#include "libalpa/sharding/transfer.h"

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

}  // namespace
}  // namespace alpa
