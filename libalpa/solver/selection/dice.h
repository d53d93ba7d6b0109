#pragma once
#include <algorithm>
#include <cstdint>

#include "libalpa/base/philox.h"

namespace alpa {

/// Draws that depend on nothing but the seed, the number of the try and how many were drawn in it.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t number) : seed_(seed), number_(number) {}

  double uniform() { return philox_uniform_at(seed_, number_, drawn_++); }
  int below(int count) { return std::min(count - 1, static_cast<int>(uniform() * count)); }

 private:
  std::uint64_t seed_, number_, drawn_ = 0;
};

}  // namespace alpa
