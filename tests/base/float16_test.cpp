#include "libalpa/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace alpa {
namespace {

TEST(F16, EveryValueSurvivesTheWayThroughF32) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = to_float(Float16{static_cast<std::uint16_t>(bits)});
    const Float16 back = to_float16(value);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(to_float(back))) << bits;
    else
      EXPECT_EQ(back.bits, bits);
  }
}

// Between neighbours a and b: below the middle to a, above it to b, and on it to the one whose bits are even.
TEST(F16, RoundsToTheNearestAndTiesToEvenBetweenAllNeighbours) {
  for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const Float16 lower{bits}, upper{static_cast<std::uint16_t>(bits + 1)};
    const float middle = 0.5f * (to_float(lower) + to_float(upper));
    EXPECT_EQ(to_float16(std::nextafter(middle, 0.0f)), lower);
    EXPECT_EQ(to_float16(std::nextafter(middle, 1e9f)), upper);
    EXPECT_EQ(to_float16(middle), bits % 2 == 0 ? lower : upper);
    EXPECT_EQ(to_float16(-middle).bits, to_float16(middle).bits | 0x8000);
  }
}

TEST(F16, ValuesPastTheLargestBecomeInfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(to_float16(65504)), 65504);
  EXPECT_EQ(to_float(to_float16(std::nextafter(65520.0f, 0.0f))), 65504);
  EXPECT_EQ(to_float(to_float16(65520)), infinity);
  EXPECT_EQ(to_float(to_float16(-std::numeric_limits<float>::max())), -infinity);
}

}  // namespace
}  // namespace alpa
