#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "libalpa/base/infinity.h"

namespace alpa {

/// The numbers a setting accepts. Bounds belong to the range unless said to be open.
struct Range {
  double low = -infinity;
  double high = infinity;
  bool low_is_open = false, high_is_open = false;

  bool contains(double value) const {
    return (low_is_open ? value > low : value >= low) && (high_is_open ? value < high : value <= high);
  }
};

inline Range any_number() { return {}; }
inline Range at_least(double low) { return {.low = low}; }
inline Range more_than(double low) { return {.low = low, .low_is_open = true}; }
inline Range at_most(double high) { return {.high = high}; }
inline Range between(double low, double high) { return {.low = low, .high = high}; }
/// low <= value < high, e.g. the decay rates of AdamW.
inline Range from_below(double low, double high) { return {.low = low, .high = high, .high_is_open = true}; }

/// "at least 1", "more than 0", "from 0 to below 1"; "" when every number is in it.
std::string range_text(const Range&);

/// The number of the range that takes the place of a refused one: 0 where it can, else one near a bound.
double stand_in(const Range&);

/// One choice of a setting whose value is a word, e.g. {"cosine", Schedule::cosine, "half a cosine down to
/// ..."}.
template <class Value>
struct Word {
  std::string_view name;
  Value value;
  std::string_view sentence = {};  ///< what choosing it means, for the reference
};

}  // namespace alpa
