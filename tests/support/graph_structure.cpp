#include "tests/support/graph_structure.h"

#include <algorithm>
#include <random>

namespace alpa {

Values graph_structure(const Shape& shape, std::int64_t group, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::max<std::int64_t>(end, 1)));
  };
  const std::int64_t columns = shape[2], children = columns - 1, rows = group * shape[1];
  Values all(static_cast<std::size_t>(element_count(shape)), -1.0);
  for (std::int64_t first = 0; first < shape[0] * shape[1]; first += rows) {
    const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
      return all[static_cast<std::size_t>((first + row) * columns + column)];
    };
    const std::int64_t used = rows - below(rows / 4 + 1);
    std::int64_t begin = 0, round = 0;
    while (begin < used) {
      const std::int64_t end = std::min(used, begin + 1 + below(rows / 3 + 1));
      for (std::int64_t row = begin; row < end; ++row)
        for (std::int64_t c = 0; c < children && begin > 0; ++c)
          if (c == 0 || below(3) > 0) at(row, c) = static_cast<double>(below(begin));
      at(round++, children) = static_cast<double>(end);
      begin = end;
    }
    for (; round < rows; ++round) at(round, children) = 0;
  }
  return all;
}

}  // namespace alpa
