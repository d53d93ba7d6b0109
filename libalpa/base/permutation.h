#pragma once
#include <cstdint>

namespace alpa {

/// Place of `index` in a permutation of 0 .. size - 1, another one for each key and epoch; found without a
/// table.
std::int64_t permuted(std::int64_t index, std::int64_t size, std::uint64_t key, std::uint64_t epoch);

}  // namespace alpa
