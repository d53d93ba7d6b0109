#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace alpa {

constexpr float kLowestExponent = -87.3365447f;  ///< below, e^x is not a normal number

/// e^x = result * 2^power. Polynomial of Cephes' expf (S. Moshier).
inline float exp_apart(float x, std::int32_t& power) {
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23
  const float shifted = x * 1.44269504f + to_integer;
  const float n = shifted - to_integer;
  // ln 2 in two parts, the first exact in products with n.
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(to_integer);
  return p * (r * r) + r + 1.0f;
}

inline float power_of_two(std::int32_t power) { return std::bit_cast<float>((power + 127) << 23); }

/// e^x to about 1.5 units in the last place, without branches or tables so that loops over it vectorise.
/// Results below the smallest normal number are 0; infinities and NaN as std::exp.
inline float fast_exp(float x) {
  constexpr float highest = 88.7228394f;
  std::int32_t power;
  const float p = exp_apart(x < kLowestExponent ? kLowestExponent : x > highest ? highest : x, power);
  // In two factors: the power reaches 128, which has no exponent of its own.
  const float value = p * power_of_two(power >> 1) * power_of_two(power - (power >> 1));
  return x < kLowestExponent ? 0.0f : x > highest ? std::numeric_limits<float>::infinity() : value;
}

/// The same for x up to 88, of which a softmax has none above 0, in fewer instructions.
inline float fast_exp_of_softmax(float x) {
  std::int32_t power;
  const float p = exp_apart(x < kLowestExponent ? kLowestExponent : x, power);
  return x < kLowestExponent ? 0.0f : p * power_of_two(power);
}

/// Of x below -87.3 it is that of -87.3, 1.2e-38.
inline float sigmoid(float x) {
  std::int32_t power;
  const float p = exp_apart(x > -kLowestExponent  ? kLowestExponent
                            : x < kLowestExponent ? -kLowestExponent
                                                  : -x,
                            power);
  return 1.0f / (1.0f + p * power_of_two(power));
}

/// To about 1.2e-7, absolute.
inline float fast_tanh(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

}  // namespace alpa
