#pragma once
#include <limits>

namespace alpa {

/// The cost of what must not be chosen, in seconds, and the bound of what has none.
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace alpa
