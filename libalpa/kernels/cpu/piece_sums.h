#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa {

/// Sums of rows gathered in a fixed number of pieces, so that they have the same bits with any number of
/// threads.
class PieceSums {
 public:
  /// For `rows` rows of `width` sums each.
  PieceSums(std::int64_t rows, std::int64_t width)
      : count_(std::clamp<std::int64_t>(std::min(rows / 8, rows * width / kElementGrain), 1, 32)),
        width_(width),
        sums_(static_cast<std::size_t>(count_ * width)) {}

  std::int64_t count() const { return count_; }

  /// The sums of one piece, set to zero.
  float* cleared(std::int64_t piece) {
    float* sums = sums_.data() + piece * width_;
    std::fill_n(sums, width_, 0.0f);
    return sums;
  }

  /// Writes the sums over all pieces of columns [first, first + columns) to `out`, or adds them.
  template <class T>
  void finish(std::int64_t first, std::int64_t columns, T* out, bool add) const {
    for_ranges(columns, row_grain(count_), [this, first, out, add](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        float sum = add ? to_float(out[c]) : 0.0f;
        for (std::int64_t p = 0; p < count_; ++p) sum += sums_[p * width_ + first + c];
        out[c] = from_float<T>(sum);
      }
    });
  }

 private:
  std::int64_t count_, width_;
  std::vector<float> sums_;
};

}  // namespace alpa
