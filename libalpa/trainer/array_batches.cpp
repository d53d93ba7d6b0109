#include "libalpa/trainer/array_batches.h"

namespace alpa {

void ArrayBatches::fill(Split split, std::int64_t first_sample, std::span<const std::span<std::byte>> into) {
  for (std::size_t input = 0; input < into.size(); ++input) {
    const auto row_bytes = static_cast<std::size_t>(byte_count(source_.inputs()[input].row));
    for (std::size_t i = 0; i * row_bytes < into[input].size(); ++i)
      source_.read(input, order().window_start(split, first_sample + static_cast<std::int64_t>(i)),
                   into[input].subspan(i * row_bytes, row_bytes));
  }
}

}  // namespace alpa
