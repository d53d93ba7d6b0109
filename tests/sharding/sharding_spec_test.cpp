#include "libalpa/sharding/sharding_spec.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const MeshShape mesh{2, 4};

TEST(TileShape, ReplicatedTensorIsItsOwnTile) {
  EXPECT_EQ(tile_shape({8, 128}, parse_spec("RR"), mesh), (Shape{8, 128}));
}

TEST(TileShape, EachMeshAxisDividesTheDimensionItSplits) {
  EXPECT_EQ(tile_shape({8, 128}, parse_spec("S0R"), mesh), (Shape{4, 128}));
  EXPECT_EQ(tile_shape({8, 128}, parse_spec("S0S1"), mesh), (Shape{4, 32}));
  EXPECT_EQ(tile_shape({8, 128}, parse_spec("S01R"), mesh), (Shape{1, 128}));
  EXPECT_EQ(tile_shape({8, 128}, parse_spec("S0R+sum1"), mesh), (Shape{4, 128}));
}

TEST(TileShape, RefusesALayoutTheMeshCannotHold) {
  EXPECT_THAT(
      [] {
        tile_shape({8, 126}, parse_spec("RS1"), mesh);
      },
      ThrowsMessage<Error>(HasSubstr("8x126 does not split as RS1 on a mesh of 2x4")));
  EXPECT_FALSE(fits({8, 128}, parse_spec("S0S0"), mesh));
  EXPECT_FALSE(fits({8, 128}, parse_spec("S0R+sum0"), mesh));
}

TEST(TileOrigin, FollowsTheOrderOfTheAxes) {
  EXPECT_EQ(tile_origin({8, 128}, parse_spec("S01R"), mesh, {1, 2}), (Shape{6, 0}));
  EXPECT_EQ(tile_origin({8, 128}, parse_spec("S10R"), mesh, {1, 2}), (Shape{5, 0}));
}

TEST(ReplicaCount, CountsTheAxesThatDoNothing) {
  EXPECT_EQ(replica_count(parse_spec("RR"), mesh), 8);
  EXPECT_EQ(replica_count(parse_spec("S0R"), mesh), 4);
  EXPECT_EQ(replica_count(parse_spec("S0R+sum1"), mesh), 1);
}

TEST(SplitsAlong, ASumIsNoSplit) {
  const ShardingSpec spec = parse_spec("RS20+sum1");
  EXPECT_TRUE(splits_along(spec, 0));
  EXPECT_FALSE(splits_along(spec, 1));
  EXPECT_TRUE(splits_along(spec, 2));
  EXPECT_FALSE(splits_along(spec, 3));
}

TEST(SpecText, ReadsBackWhatItWrites) {
  for (const char* text : {"RR", "S0R", "RS01", "S1S0", "-", "RR+sum1", "-+sum0+max1", "S0R+sum1"})
    EXPECT_EQ(spec_text(parse_spec(text)), text);
  EXPECT_THROW(parse_spec("QR"), Error);
  EXPECT_THROW(parse_spec("RR+son1"), Error);
}

TEST(AllSpecs, OfAMatrixOnA2DMeshAreThoseOfThePaper) {
  std::vector<std::string> texts;
  for (const ShardingSpec& spec : all_specs({8, 128}, mesh)) texts.push_back(spec_text(spec));
  EXPECT_THAT(
      texts, testing::UnorderedElementsAre("RR", "S0R", "RS0", "S1R", "RS1", "S0S1", "S1S0", "S01R", "RS01"));
}

}  // namespace
}  // namespace alpa
