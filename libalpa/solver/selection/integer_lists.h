#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace alpa {

/// Lists of integers one behind the other.
struct IntegerLists {
  std::vector<std::int64_t> values;
  std::vector<std::size_t> ends;  ///< of each list in `values`

  std::size_t size() const { return ends.size(); }
  std::span<const std::int64_t> operator[](std::size_t k) const {
    const std::size_t begin = k == 0 ? 0 : ends[k - 1];
    return {values.data() + begin, ends[k] - begin};
  }
};

}  // namespace alpa
