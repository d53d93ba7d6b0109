#include "libalpa/base/constraint.h"

#include <fmt/core.h>

#include <cmath>

namespace alpa {

std::string range_text(const Range& range) {
  const bool has_low = std::isfinite(range.low), has_high = std::isfinite(range.high);
  const std::string low = fmt::format("{}", range.low), high = fmt::format("{}", range.high);
  if (has_low && has_high)
    return (range.low_is_open ? "above " : "from ") + low + (range.high_is_open ? " to below " : " to ") +
           high;
  if (has_low) return (range.low_is_open ? "more than " : "at least ") + low;
  if (has_high) return (range.high_is_open ? "less than " : "at most ") + high;
  return "";
}

double stand_in(const Range& range) {
  for (const double candidate : {0.0, range.low, range.high, range.low + 1, range.high - 1})
    if (std::isfinite(candidate) && range.contains(candidate)) return candidate;
  return (range.low + range.high) / 2;
}

}  // namespace alpa
