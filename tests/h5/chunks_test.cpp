#include "libalpa/h5/chunks.h"

#include <gmock/gmock.h>

#include <numeric>

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t mib = 1 << 20;

TEST(ChunkShape, IsTheWholeTensorUpTo4MiBAndEvenPiecesOfItBeyond) {
  EXPECT_EQ(chunk_shape({1}, 4), (Shape{1}));
  EXPECT_EQ(chunk_shape({1024, 1024}, 4), (Shape{1024, 1024}));
  EXPECT_EQ(chunk_shape({1025, 1024}, 4), (Shape{513, 1024}));
  EXPECT_EQ(chunk_shape({3000, 1024}, 4), (Shape{1000, 1024}));
  EXPECT_EQ(chunk_shape({50257, 1600}, 2), (Shape{1289, 1600}));
  EXPECT_EQ(chunk_shape({7, 3 * mib}, 4), (Shape{1, mib}));
  EXPECT_EQ(chunk_shape({64, 0}, 4), (Shape{64, 1}));
}

TEST(ChunkShape, StaysBetween1And4MiBForLargeTensors) {
  for (const Shape& extent :
       {Shape{50257, 768}, {1, 5'000'000}, {3, 700, 900}, {2'000'000}, {513, 2, 2048}, {9, 9, 30'001}}) {
    const std::int64_t bytes = element_count(chunk_shape(extent, 4)) * 4;
    EXPECT_GE(bytes, mib) << shape_text(extent);
    EXPECT_LE(bytes, 4 * mib) << shape_text(extent);
  }
}

TEST(ChunkOffsets, CoverTheTensorInRowMajorOrder) {
  EXPECT_THAT(chunk_offsets({5, 4}, {3, 2}), ElementsAre(Shape{0, 0}, Shape{0, 2}, Shape{3, 0}, Shape{3, 2}));
  EXPECT_THAT(chunk_offsets({0, 4}, {1, 4}), IsEmpty());
}

TEST(Fletcher32, AddsBigEndianWordsModulo65535) {
  EXPECT_EQ(fletcher32(std::string{}), 0u);
  EXPECT_EQ(fletcher32(std::string("\x01\x02", 2)), 0x01020102u);
  EXPECT_EQ(fletcher32(std::string("\x01\x02\x03\x04", 4)), 0x05080406u);
  EXPECT_EQ(fletcher32(std::string("\x01\x02\x03", 3)), 0x05040402u);
  EXPECT_EQ(fletcher32(std::string("\xff\xff", 2)), 0xffffffffu);
}

TEST(RegionFault, ReportsABoxOutsideTheTensor) {
  EXPECT_EQ(region_fault({{0, 2}, {4, 2}}, {4, 4}), "");
  EXPECT_EQ(region_fault({}, {}), "");
  EXPECT_EQ(region_fault({{4, 0}, {0, 4}}, {4, 4}), "");
  EXPECT_EQ(region_fault({{0, 3}, {4, 2}}, {4, 4}), "region 4x2 at offset 0x3 is not inside 4x4");
  EXPECT_THAT(region_fault({{-1, 0}, {1, 1}}, {4, 4}), HasSubstr("not inside"));
  EXPECT_THAT(region_fault({{0}, {4}}, {4, 4}), HasSubstr("not inside"));
  EXPECT_THAT(region_fault({{1}, {INT64_MAX}}, {4}), HasSubstr("not inside"));
}

TEST(CopyBox, MovesABoxBetweenRegions) {
  // Rows 1 and 2, columns 2 and 3 of a 3x4 tensor, into columns 1.. of it.
  std::vector<char> from(12), to(9, -1);
  std::iota(from.begin(), from.end(), '\0');
  copy_box({{1, 2}, {2, 2}}, {{{0, 0}, {3, 4}}, from.data()}, {{{0, 1}, {3, 3}}, to.data()}, 1);
  EXPECT_THAT(to, ElementsAre(-1, -1, -1, -1, 6, 7, -1, 10, 11));
}

std::string text_of(const ChunkPlan& plan) {
  std::string text = "owner " + std::to_string(plan.owner);
  for (const HeldRegion& p : plan.pieces)
    text += ", rank " + std::to_string(p.rank) + ": " + shape_text(p.region.count) + " at " +
            shape_text(p.region.offset);
  for (const TensorRegion& m : plan.missing)
    text += ", missing " + shape_text(m.count) + " at " + shape_text(m.offset);
  return text;
}

const TensorRegion chunk{{0, 0}, {4, 4}};
const std::vector<std::int64_t> nothing_yet(4);

TEST(PlanChunk, TakesItWholeFromTheRankThatHoldsIt) {
  EXPECT_EQ(text_of(plan_chunk(chunk, {{0, 0, {{4, 0}, {4, 4}}}, {1, 0, {{0, 0}, {4, 4}}}}, nothing_yet)),
            "owner 1, rank 1: 4x4 at 0x0");
}

TEST(PlanChunk, IsOfTheReplicaWithTheLeastToWrite) {
  const std::vector<HeldRegion> replicas{{0, 0, {{0, 0}, {8, 4}}}, {3, 0, {{0, 0}, {8, 4}}}};
  EXPECT_EQ(text_of(plan_chunk(chunk, replicas, nothing_yet)), "owner 0, rank 0: 4x4 at 0x0");
  const std::vector<std::int64_t> some{2, 0, 0, 1};  // ranks 1 and 2 hold none
  EXPECT_EQ(text_of(plan_chunk(chunk, replicas, some)), "owner 3, rank 3: 4x4 at 0x0");
}

TEST(PlanChunk, SendsColumnsToTheRankThatHoldsMost) {
  EXPECT_EQ(text_of(plan_chunk(chunk, {{0, 0, {{0, 0}, {4, 1}}}, {1, 0, {{0, 1}, {4, 3}}}}, nothing_yet)),
            "owner 1, rank 1: 4x3 at 0x1, rank 0: 4x1 at 0x0");
}

TEST(PlanChunk, AsksForNothingTwice) {
  // Two-way data parallelism over two columns: four ranks, each column held twice.
  const TensorRegion left{{0, 0}, {4, 2}}, right{{0, 2}, {4, 2}};
  EXPECT_EQ(
      text_of(plan_chunk(chunk, {{0, 0, left}, {1, 0, right}, {2, 0, left}, {3, 0, right}}, nothing_yet)),
      "owner 0, rank 0: 4x2 at 0x0, rank 1: 4x2 at 0x2");
}

TEST(CopyPart, ReadsNoMoreThanWhatABoxLiesIn) {
  // Rows 1 and 2, columns 0 to 2 of a 3x3 tensor in memory of 4x4, from row 10 on of the whole.
  std::vector<std::byte> memory(16), buffer;
  for (std::size_t i = 0; i < 16; ++i) memory[i] = static_cast<std::byte>(i);
  std::int64_t first = -1, bytes = 0;
  const TensorPart part({{10, 0}, {3, 3}}, {4, 4}, [&](std::int64_t at, std::span<std::byte> into) {
    first = at;
    bytes = std::ssize(into);
    std::copy_n(memory.begin() + at, into.size(), into.begin());
  });
  std::vector<char> to(6);
  copy_part({{11, 0}, {2, 3}}, part, {{{11, 0}, {2, 3}}, to.data()}, 1, buffer);
  EXPECT_THAT(to, ElementsAre(4, 5, 6, 8, 9, 10));
  EXPECT_EQ(first, 4);
  EXPECT_EQ(bytes, 7);
}

TEST(CopyPart, GoesThroughPiecesOf4MiBWhereMostOfItIsPadding) {
  std::int64_t most = 0;
  const TensorPart part({{0, 0, 0}, {8, 1, 256}}, {8, 4096, 256},
                        [&](std::int64_t, std::span<std::byte> into) {
                          most = std::max(most, std::ssize(into));
                          std::fill(into.begin(), into.end(), std::byte{1});
                        });
  std::vector<char> to(8 * 256);
  std::vector<std::byte> buffer;
  copy_part({{0, 0, 0}, {8, 1, 256}}, part, {{{0, 0, 0}, {8, 1, 256}}, to.data()}, 1, buffer);
  EXPECT_THAT(to, testing::Each(1));
  EXPECT_LE(most, 4 * mib);
}

TEST(PlanChunk, FindsWhatNobodyHolds) {
  EXPECT_EQ(text_of(plan_chunk(chunk, {}, nothing_yet)), "owner 0, missing 4x4 at 0x0");
  EXPECT_EQ(text_of(plan_chunk(chunk, {{0, 0, {{1, 1}, {2, 2}}}}, nothing_yet)),
            "owner 0, rank 0: 2x2 at 1x1, missing 1x4 at 0x0, missing 1x4 at 3x0, missing 2x1 at 1x0, "
            "missing 2x1 at 1x3");
}

}  // namespace
}  // namespace alpa
