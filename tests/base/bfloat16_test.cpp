#include "libalpa/base/bfloat16.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace alpa {
namespace {

TEST(Bf16, EveryValueSurvivesTheWayThroughF32) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = to_float(Bfloat16{static_cast<std::uint16_t>(bits)});
    const Bfloat16 back = to_bfloat16(value);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(to_float(back))) << bits;
    else
      EXPECT_EQ(back.bits, bits);
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  const float ulp = 0x1p-7f;  // bf16 keeps 7 bits after the point of 1.0
  EXPECT_EQ(to_float(to_bfloat16(1 + 0.49f * ulp)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(1 + 0.51f * ulp)), 1 + ulp);
  EXPECT_EQ(to_float(to_bfloat16(1 + 0.5f * ulp)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(1 + 1.5f * ulp)), 1 + 2 * ulp);
}

TEST(Bf16, ValuesPastTheLargestBecomeInfinite) {
  EXPECT_EQ(to_float(to_bfloat16(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace alpa
