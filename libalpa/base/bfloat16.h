#pragma once
#include <bit>
#include <cstdint>

namespace alpa {

/// The upper half of an f32: how bf16 values lie in host memory.
struct Bfloat16 {
  std::uint16_t bits;
  bool operator==(const Bfloat16&) const = default;
};

constexpr float to_float(float value) { return value; }
constexpr float to_float(Bfloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

/// The nearest bf16 of an f32, ties to even. A NaN becomes the quiet one, too large values become infinite.
constexpr Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<std::uint16_t>(value != value ? 0x7FC0u : rounded)};
}

}  // namespace alpa
