#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"

namespace alpa {

/// Sums over the rows of each of several equal blocks, column by column, gathered in a fixed number of
/// pieces, so that they have the same bits with any number of threads.
class ColumnSums {
 public:
  ColumnSums(std::int64_t blocks, std::int64_t rows, std::int64_t columns)
      : blocks_(blocks),
        rows_(rows),
        columns_(columns),
        pieces_(std::clamp<std::int64_t>(std::min(rows / 8, rows * columns / kElementGrain), 1, 32)),
        sums_(static_cast<std::size_t>(blocks * pieces_ * columns)) {}

  /// add(sums, block, row) adds what row `row` of all rows gives to its block's sums of a piece.
  template <class Add>
  void gather(const Add& add) {
    for_pieces(blocks_ * rows_, blocks_ * pieces_,
               [=, this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
                 float* sums = sums_.data() + piece * columns_;
                 std::fill_n(sums, columns_, 0.0f);
                 for (std::int64_t row = begin; row < end; ++row) add(sums, piece / pieces_, row);
               });
    for_ranges(blocks_ * columns_, row_grain(pieces_), [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* sum = sums_.data() + i / columns_ * pieces_ * columns_ + i % columns_;
        for (std::int64_t piece = 1; piece < pieces_; ++piece) *sum += sum[piece * columns_];
      }
    });
  }

  /// The sums of a block's columns.
  const float* of(std::int64_t block) const { return sums_.data() + block * pieces_ * columns_; }

 private:
  std::int64_t blocks_, rows_, columns_, pieces_;
  std::vector<float> sums_;
};

}  // namespace alpa
