#include "libalpa/weights/rearrangement.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "libalpa/base/float_types.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;

/// What ours is when theirs counts 0, 1, 2, ...
std::vector<float> ours_of_counted(const Rearrangement& where, std::int64_t our_elements) {
  std::vector<float> theirs(static_cast<std::size_t>(element_count(where.their_shape())));
  std::iota(theirs.begin(), theirs.end(), 0.0f);
  std::vector<float> ours(static_cast<std::size_t>(our_elements), -1);
  where.gather(
      DType::f32,
      [&](std::int64_t first, std::int64_t count, void* into) {
        ASSERT_LE(first + count, static_cast<std::int64_t>(theirs.size()));
        std::memcpy(into, theirs.data() + first, static_cast<std::size_t>(count) * sizeof(float));
      },
      DType::f32, false, ours.data());
  return ours;
}

TEST(Rearrangement, TransposesALinearMap) {
  const Rearrangement where("d f", "f d", 0, {2, 3});
  EXPECT_EQ(where.their_shape(), (Shape{3, 2}));
  EXPECT_FALSE(where.is_same());
  EXPECT_THAT(ours_of_counted(where, 6), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(Rearrangement, TakesApartHeads) {
  const Rearrangement where("d h k", "(h k) d", 0, {2, 2, 2});
  EXPECT_EQ(where.their_shape(), (Shape{4, 2}));
  EXPECT_THAT(ours_of_counted(where, 8), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(Rearrangement, TakesOneOfThreeThatAreStoredAsOne) {
  const Rearrangement where("d h k", "d (3 h k)", 1, {2, 1, 2});
  EXPECT_EQ(where.their_shape(), (Shape{2, 6}));
  EXPECT_THAT(ours_of_counted(where, 4), ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(ours_of_counted(Rearrangement("h k", "(3 h k)", 2, {2, 1}), 2), ElementsAre(4, 5));
}

TEST(Rearrangement, RepeatsARow) {
  const Rearrangement where("s d", "2 d", 0, {3, 2});
  EXPECT_EQ(where.their_shape(), (Shape{2, 2}));
  EXPECT_THAT(ours_of_counted(where, 6), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(Rearrangement, KnowsWhatNeedsNone) {
  EXPECT_TRUE(Rearrangement("v d", "v d", 0, {5, 3}).is_same());
  EXPECT_TRUE(Rearrangement("h k d", "(h k) d", 0, {2, 3, 4}).is_same());
  EXPECT_FALSE(Rearrangement("h k", "(3 h k)", 0, {2, 3}).is_same());
}

// Larger than what is read at a time, so that pieces meet.
TEST(Rearrangement, ScattersBackWhatItGathered) {
  const Shape shape{700, 6, 300};
  for (const int part : {0, 1, 2}) {
    const Rearrangement where("d h k", "d (3 h k)", part, shape);
    const std::vector<float> ours = ours_of_counted(where, element_count(shape));
    std::vector<float> theirs(static_cast<std::size_t>(element_count(where.their_shape())), -1);
    where.scatter(DType::f32, ours.data(), theirs.data());
    std::size_t placed = 0;
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (theirs[i] >= 0) {
        ASSERT_EQ(theirs[i], static_cast<float>(i));
        ++placed;
      }
    EXPECT_EQ(placed, ours.size());
  }
}

template <class To>
To converted(DType from, std::uint32_t bits, DType to, To before = {}, bool adds = false) {
  Rearrangement("d", "d", 0, {1})
      .gather(
          from,
          [&](std::int64_t, std::int64_t, void* into) {
            std::memcpy(into, &bits, from == DType::f32 ? 4 : 2);
          },
          to, adds, &before);
  return before;
}

TEST(Rearrangement, WidensHalves) {
  const auto half = [](std::uint32_t bits) { return converted<float>(DType::f16, bits, DType::f32); };
  EXPECT_EQ(half(0x3C00), 1.0f);
  EXPECT_EQ(half(0xC248), -3.140625f);
  EXPECT_EQ(half(0x7BFF), 65504.0f);
  EXPECT_EQ(half(0x0400), 0x1p-14f);  // the smallest normal number
  EXPECT_EQ(half(0x03FF), 1023 * 0x1p-24f);
  EXPECT_EQ(half(0x8001), -0x1p-24f);
  EXPECT_TRUE(std::signbit(half(0x8000)));
  EXPECT_EQ(half(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7E00)));
}

TEST(Rearrangement, ConvertsBetweenTypesAndKeepsTheBitsOfItsOwn) {
  const float pi = 3.14159265f;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(pi);
  EXPECT_EQ(converted<Bfloat16>(DType::f32, bits, DType::bf16), to_bfloat16(pi));
  EXPECT_EQ(converted<float>(DType::bf16, 0x4049, DType::f32), to_float(Bfloat16{0x4049}));
  EXPECT_EQ(converted<Bfloat16>(DType::bf16, 0xFF81, DType::bf16).bits, 0xFF81);  // a signalling NaN
  EXPECT_EQ(converted<Float16>(DType::f32, bits, DType::f16), to_float16(pi));
  EXPECT_EQ(converted<Float16>(DType::f16, 0xFC01, DType::f16).bits, 0xFC01);  // likewise
  EXPECT_EQ(converted<float>(DType::f32, bits, DType::f32, 1.0f, true), pi + 1);
}

}  // namespace
}  // namespace alpa
