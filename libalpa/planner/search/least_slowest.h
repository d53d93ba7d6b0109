#pragma once
#include <algorithm>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

/// Units in so many consecutive parts, none of them empty, the slowest of which is as fast as can be: [part]
/// its end. `seconds(part, begin, end)`: what a part takes; infinite: it cannot be. Empty: there is no way.
template <class Seconds>
std::vector<int> least_slowest_ends(int parts, int units, const Seconds& seconds) {
  struct Way {
    double slowest_s = infinity;
    int begin = 0;  ///< of the last part
  };
  std::vector<std::vector<Way>> ways(parts + 1, std::vector<Way>(units + 1));  // [parts done][unit]
  ways[0][0].slowest_s = 0;
  for (int part = 0; part < parts; ++part)
    for (int end = part + 1; end <= units - (parts - 1 - part); ++end)
      for (int begin = part; begin < end; ++begin) {
        if (ways[part][begin].slowest_s == infinity) continue;
        const double slowest_s = std::max(ways[part][begin].slowest_s, seconds(part, begin, end));
        if (slowest_s < ways[part + 1][end].slowest_s) ways[part + 1][end] = {slowest_s, begin};
      }
  if (ways[parts][units].slowest_s == infinity) return {};
  std::vector<int> ends(parts);
  for (int part = parts, end = units; part > 0; --part) {
    ends[part - 1] = end;
    end = ways[part][end].begin;
  }
  return ends;
}

}  // namespace alpa
