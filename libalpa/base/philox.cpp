#include "libalpa/base/philox.h"

#include <cmath>

namespace alpa {

float philox_normal(std::uint32_t word0, std::uint32_t word1) {
  // (0, 1]: the logarithm needs a positive argument.
  const double u = (static_cast<double>(word0) + 1.0) * 0x1p-32;
  const double v = static_cast<double>(word1) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * M_PI * v));
}

float philox_normal_at(std::uint64_t key, std::uint64_t high, std::uint64_t index) {
  const PhiloxBlock block = philox(key, high, index / 2);
  return philox_normal(block.word[2 * (index % 2)], block.word[2 * (index % 2) + 1]);
}

}  // namespace alpa
