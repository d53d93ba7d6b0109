#include "libalpa/profiler/typical_graphs.h"

#include <algorithm>
#include <cmath>

namespace alpa {
namespace {

/// Where each round of a group ends.
std::vector<std::int64_t> round_ends(std::int64_t rows, std::int64_t samples, std::int64_t children) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (int height = 0; end < rows; ++height) {
    // 51.3, 12.0, 7.8, 5.7, 4.5, 3.7 % of the vertices are of heights 0 to 5.
    const double share = height == 0 ? 0.513 : 0.12 * std::pow(height, -0.7) * std::exp(-0.03 * height);
    const std::int64_t size =
        children == 1 ? samples : std::max<std::int64_t>(1, std::llround(share * static_cast<double>(rows)));
    end = std::min(rows, end + size);
    ends.push_back(end);
  }
  return ends;
}

}  // namespace

std::vector<std::int32_t> typical_graphs(const Shape& shape, std::int64_t group) {
  const std::int64_t columns = shape[2], children = columns - 1, rows = group * shape[1];
  std::vector<std::int32_t> of_group(static_cast<std::size_t>(rows * columns), -1);
  const std::vector<std::int64_t> ends = round_ends(rows, group, children);
  for (std::int64_t row = 0; row < rows; ++row)
    of_group[static_cast<std::size_t>((row + 1) * columns - 1)] =
        row < std::ssize(ends) ? static_cast<std::int32_t>(ends[static_cast<std::size_t>(row)]) : 0;
  // Each row is a child once: the first of a vertex is of the round before, the others of the oldest ones.
  std::vector<bool> taken(static_cast<std::size_t>(rows), false);
  std::int64_t oldest = 0;
  for (std::size_t round = 1; round < ends.size(); ++round) {
    const std::int64_t before = round == 1 ? 0 : ends[round - 2];
    std::int64_t first = before;
    for (std::int64_t row = ends[round - 1]; row < ends[round]; ++row)
      for (std::int64_t c = 0; c < std::min<std::int64_t>(children, 2); ++c) {
        std::int64_t& next = c == 0 ? first : oldest;
        while (next < ends[round - 1] && taken[static_cast<std::size_t>(next)]) ++next;
        if (next >= ends[round - 1]) continue;
        taken[static_cast<std::size_t>(next)] = true;
        of_group[static_cast<std::size_t>(row * columns + c)] = static_cast<std::int32_t>(next);
      }
  }
  std::vector<std::int32_t> all;
  for (std::int64_t g = 0; g < shape[0] / group; ++g) all.insert(all.end(), of_group.begin(), of_group.end());
  return all;
}

}  // namespace alpa
