#pragma once
#include <bit>
#include <cstdint>

namespace alpa {

/// IEEE half precision as it lies in host memory: 5 bits of exponent, 10 of fraction.
struct Float16 {
  std::uint16_t bits;
  bool operator==(const Float16&) const = default;
};

constexpr float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16, exponent = (value.bits >> 10) & 31u,
                      fraction = value.bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -small : small;
}

/// The nearest f16 of an f32, ties to even. A NaN stays a (quiet) NaN, too large values become infinite.
constexpr Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u;
  } else if (magnitude >= 0x477FF000u) {  // halfway from the largest, 65504, to what would come next
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // a fraction that rounds up to 1 carries into the exponent
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {  // below 2^-14: added to 1/2, the sum is rounded to multiples of 2^-24 as f16 is here
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace alpa
