#pragma once
#include <vector>

namespace alpa {

/// [layer] Of all layers before, so that what ranges of layers take is a difference.
using LayerSums = std::vector<double>;

inline LayerSums layer_sums(const std::vector<double>& of_layer) {
  LayerSums sums{0};
  for (const double each : of_layer) sums.push_back(sums.back() + each);
  return sums;
}

inline double sum_between(const LayerSums& sums, int first, int end) { return sums[end] - sums[first]; }

}  // namespace alpa
