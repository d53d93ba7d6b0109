#include "libalpa/profiler/structure_of_rounds.h"

#include <algorithm>

#include "libalpa/graph/vertex_rows.h"

namespace alpa {

std::vector<std::int32_t> structure_of_rounds(const Shape& shape, const Attributes& attributes) {
  const std::int64_t group = attributes.integer("size_b");
  const std::int64_t columns = shape[2], children = columns - 1, rows = group * shape[1];
  std::vector<std::int64_t> rounds = typical_rounds_of(attributes);
  if (rounds.empty()) rounds = rounds_of_full_groups(shape, group);
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (const std::int64_t size : rounds) {
    if (end == rows) break;
    ends.push_back(end = std::min(rows, end + size));
  }
  std::vector<std::int32_t> of_group(static_cast<std::size_t>(rows * columns), -1);
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
