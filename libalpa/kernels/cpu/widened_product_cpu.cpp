#include "libalpa/kernels/cpu/widened_product_cpu.h"

#include <algorithm>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"

namespace alpa {
namespace {

/// Of a tile of the result, and of the part of the sum that is widened at once: three tiles of f32 are 2 MiB,
/// and a number is widened once for some hundred times that it is multiplied.
constexpr std::int64_t kTile = 512, kSum = 256;

/// One thread's tiles of left and right operands and of the result. Kept from product to product, as every
/// kernel of a model would hold some MiB else.
struct WideTiles {
  std::vector<float> left = std::vector<float>(kTile * kSum), right = left,
                     result = std::vector<float>(kTile * kTile);
};
WideTiles& own_tiles() {
  thread_local WideTiles tiles;
  return tiles;
}

/// Widens rows [first_row, + rows) and columns [first_column, + columns) of a matrix into `to`, as they lie.
MatrixFactor widened(const MatrixLayout& layout, const Bfloat16* matrix, std::int64_t first_row,
                     std::int64_t rows, std::int64_t first_column, std::int64_t columns, float* to) {
  const std::int64_t count = layout.transposed ? columns : rows, length = layout.transposed ? rows : columns;
  const std::int64_t first = layout.transposed ? first_column * layout.leading + first_row
                                               : first_row * layout.leading + first_column;
  run_vectorized(best_instruction_set(), 0, count, [=, from = matrix + first](auto begin, auto end) {
    for (std::int64_t i = begin; i < end; ++i)
      round_numbers(from + i * layout.leading, length, to + i * length);
  });
  return {{layout.transposed, length}, to};
}

class WidenedProduct final : public Bfloat16Product {
 public:
  WidenedProduct(const MatrixProduct& product, DType result)
      : p_(product), result_(result), threads_(host_threads()), batches_(trip_count(product.batch)) {
    // Tiles as large as can be, of which each thread has two.
    while (tasks() < 2 * threads_ && std::max(row_tile_, column_tile_) > kLeast)
      (row_tile_ >= column_tile_ ? row_tile_ : column_tile_) /= 2;
  }

  void run(const void* left, const void* right, void* result, bool accumulate) override {
    const auto one = [&](std::int64_t task) {
      const std::int64_t column = task % across() * column_tile_, row = task / across() % down() * row_tile_;
      make_tile({task / (across() * down()), row, column, accumulate}, static_cast<const Bfloat16*>(left),
                static_cast<const Bfloat16*>(right), result);
    };
    const std::int64_t flops = 2 * batches_ * p_.rows * p_.columns * p_.sum;
    if (threads_ == 1 || flops < 2 * kFlopGrain) {
      const HostThreads hold(1);
      for (std::int64_t task = 0; task < tasks(); ++task) one(task);
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t task = 0; task < tasks(); ++task) one(task);
  }

 private:
  static constexpr std::int64_t kLeast = 128;

  struct Place {
    std::int64_t batch, row, column;
    bool accumulate;
  };

  std::int64_t down() const { return (p_.rows + row_tile_ - 1) / row_tile_; }
  std::int64_t across() const { return (p_.columns + column_tile_ - 1) / column_tile_; }
  std::int64_t tasks() const { return batches_ * down() * across(); }

  std::int64_t offset(std::int64_t batch, std::int64_t ContractionLoop::*stride) const {
    std::int64_t offset = 0;
    for (auto loop = p_.batch.rbegin(); loop != p_.batch.rend(); ++loop) {
      offset += batch % loop->size * ((*loop).*stride);
      batch /= loop->size;
    }
    return offset;
  }

  void make_tile(const Place& at, const Bfloat16* left, const Bfloat16* right, void* result) const {
    WideTiles& own = own_tiles();
    left += offset(at.batch, &ContractionLoop::left);
    right += offset(at.batch, &ContractionLoop::right);
    const std::int64_t rows = std::min(row_tile_, p_.rows - at.row),
                       columns = std::min(column_tile_, p_.columns - at.column);
    const std::int64_t to =
        offset(at.batch, &ContractionLoop::result) + at.row * p_.result_leading + at.column;
    const bool in_place = result_ == DType::f32;
    const ProductResult sums = in_place ? ProductResult{static_cast<float*>(result) + to, p_.result_leading}
                                        : ProductResult{own.result.data(), columns};
    for (std::int64_t k = 0; k < p_.sum; k += kSum) {
      const std::int64_t depth = std::min(kSum, p_.sum - k);
      multiply({rows, columns, depth}, widened(p_.left, left, at.row, rows, k, depth, own.left.data()),
               widened(p_.right, right, k, depth, at.column, columns, own.right.data()),
               k > 0 || (in_place && at.accumulate) ? 1.0f : 0.0f, sums);
    }
    if (!in_place)
      round(own.result.data(), rows, columns, at.accumulate, static_cast<Bfloat16*>(result) + to);
  }

  void round(const float* sums, std::int64_t rows, std::int64_t columns, bool accumulate,
             Bfloat16* to) const {
    run_vectorized(best_instruction_set(), 0, rows, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* from = sums + r * columns;
        Bfloat16* row = to + r * p_.result_leading;
        if (accumulate)
          add_numbers(from, columns, row);
        else
          round_numbers(from, columns, row);
      }
    });
  }

  static void add_numbers(const float* from, std::int64_t count, Bfloat16* to) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<Bfloat16>(from[i] + to_float(to[i]));
  }

  MatrixProduct p_;
  DType result_;
  std::int64_t threads_, batches_;
  std::int64_t row_tile_ = kTile, column_tile_ = kTile;
};

}  // namespace

std::unique_ptr<Bfloat16Product> make_widened_product(const MatrixProduct& product, DType result) {
  return std::make_unique<WidenedProduct>(product, result);
}

}  // namespace alpa
