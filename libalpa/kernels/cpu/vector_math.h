#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace alpa {

/// e^x to about 1.5 units in the last place, without branches or tables so that loops over it vectorise.
/// Results below the smallest normal number are 0; infinities and NaN as std::exp. Polynomial of Cephes' expf
/// (S. Moshier).
inline float fast_exp(float x) {
  constexpr float lowest = -87.3365447f, highest = 88.7228394f, to_integer = 12582912.0f;  // 1.5 * 2^23
  const float bounded = x < lowest ? lowest : x > highest ? highest : x;
  const float shifted = bounded * 1.44269504f + to_integer;
  const float n = shifted - to_integer;
  // ln 2 in two parts, the first exact in products with n.
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors: n reaches 128, which has no exponent of its own.
  const auto exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t half = exponent >> 1;
  const float scale = std::bit_cast<float>((half + 127) << 23);
  const float rest = std::bit_cast<float>((exponent - half + 127) << 23);
  const float value = p * scale * rest;
  return x < lowest ? 0.0f : x > highest ? std::numeric_limits<float>::infinity() : value;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/// To about 1.2e-7, absolute.
inline float fast_tanh(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

}  // namespace alpa
