#pragma once
#include <limits>

namespace alpa {

/// The cost of what must not be chosen, and the bound where there is none.
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace alpa
