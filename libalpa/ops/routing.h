#pragma once
#include <cstdint>

namespace alpa {

/// Experts that a token may choose, at most: kernels hold its choices in an array of this length.
inline constexpr std::int64_t kMostChoices = 64;

}  // namespace alpa
