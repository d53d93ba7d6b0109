#include "libalpa/base/permutation.h"

#include <algorithm>
#include <bit>

#include "libalpa/base/philox.h"

namespace alpa {

// A Feistel network over the next even number of bits, repeated until it hits the range (on average less than
// four times). Six rounds of Philox leave no pattern.
std::int64_t permuted(std::int64_t index, std::int64_t size, std::uint64_t key, std::uint64_t epoch) {
  constexpr std::uint64_t rounds = 6;
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size - 1)));
  const int half_bits = std::max(1, (bits + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  auto at = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = at >> half_bits, right = at & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t mixed = left ^ (philox(key, epoch, round << 32 | right).word[0] & mask);
      left = right;
      right = mixed;
    }
    at = left << half_bits | right;
  } while (at >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(at);
}

}  // namespace alpa
