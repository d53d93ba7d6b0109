#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
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
    gather_pieces([&add](float* sums, std::int64_t block, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) add(sums, block, row);
    });
  }

  /// The same by add(rows, sums, block, row) for `rows` rows at once, a constant of 4, or 1 for what is left.
  template <class Add>
  void gather_fours(const Add& add) {
    gather_pieces([&add](float* sums, std::int64_t block, std::int64_t begin, std::int64_t end) {
      std::int64_t row = begin;
      for (; row + 4 <= end; row += 4) add(std::integral_constant<int, 4>(), sums, block, row);
      for (; row < end; ++row) add(std::integral_constant<int, 1>(), sums, block, row);
    });
  }

  /// The sums of a block's columns.
  const float* of(std::int64_t block) const { return sums_.data() + block * pieces_ * columns_; }

 private:
  /// add(sums, block, begin, end) for the rows of each piece.
  template <class Add>
  void gather_pieces(const Add& add) {
    for_pieces(blocks_ * rows_, blocks_ * pieces_,
               [=, this, &add](std::int64_t piece, std::int64_t begin, std::int64_t end) {
                 float* sums = sums_.data() + piece * columns_;
                 std::fill_n(sums, columns_, 0.0f);
                 add(sums, piece / pieces_, begin, end);
               });
    for_ranges(blocks_ * columns_, row_grain(pieces_), [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* sum = sums_.data() + i / columns_ * pieces_ * columns_ + i % columns_;
        for (std::int64_t piece = 1; piece < pieces_; ++piece) *sum += sum[piece * columns_];
      }
    });
  }

  std::int64_t blocks_, rows_, columns_, pieces_;
  std::vector<float> sums_;
};

}  // namespace alpa
