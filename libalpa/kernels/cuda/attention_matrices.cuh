#pragma once
#include "libalpa/kernels/cuda/attention_heads.cuh"
#include "libalpa/kernels/cuda/warp_instructions.cuh"

namespace alpa {

// A block of four warps works on kBlockRows rows of scores, each warp on 16 of them, against as many columns
// at a time as registers hold. Rows are queries and columns keys, or the other way round where the gradient
// of keys or values is wanted. Of 16 x 8 scores or sums a lane has its row and the one 8 below, and of these
// its column and the one after it.
inline constexpr int kBlockRows = 64, kWarpRows = 16, kBlockThreads = 128;

inline constexpr int kColumnLanes = 4;  // that share a row

__device__ inline int own_lane() { return static_cast<int>(threadIdx.x) % 32; }
/// Of this lane in those of its block, and in a tile of eight.
__device__ inline int row_of_lane() {
  return static_cast<int>(threadIdx.x) / 32 * kWarpRows + own_lane() / kColumnLanes;
}
__device__ inline int column_of_lane() { return own_lane() % kColumnLanes * 2; }

/// Vectors in shared memory; the eight elements beyond them keep eight rows on different banks.
template <class T, int kCount, int kWidth>
struct SharedRows {
  alignas(16) T element[kCount][kWidth + 8];

  /// 16 x 16 elements from there on as the left operand of a product,
  __device__ MatrixPart left(int row, int column) const {
    return load_matrices(&element[row + own_lane() % 16][column + own_lane() / 16 * 8]);
  }
  /// as right operands for 16 columns: transposed, the vectors are the columns,
  __device__ MatrixPart transposed_right(int row, int column) const {
    return load_matrices(
        &element[row + own_lane() / 16 * 8 + own_lane() % 8][column + own_lane() / 8 % 2 * 8]);
  }
  /// or as they are.
  __device__ MatrixPart right(int row, int column) const {
    return load_matrices<true>(&element[row + own_lane() % 16][column + own_lane() / 16 * 8]);
  }

  /// All threads of a block begin to fill kNew rows from `row` on, with zeros where there are no more
  /// vectors.
  template <int kNew>
  __device__ void load(int row, const Vectors<const T>& from, std::int64_t width) {
    constexpr int kPiece = 8;
    for (int i = static_cast<int>(threadIdx.x); i < kNew * kWidth / kPiece; i += kBlockThreads) {
      const int r = i / (kWidth / kPiece), column = i % (kWidth / kPiece) * kPiece;
      T* to = &element[row + r][column];
      const T* vector = from.data + r * from.stride;
      if (width % kPiece == 0) {
        const bool exists = r < from.count && column < width;
        copy_async(to, exists ? vector + column : from.data, exists);
      } else {
        for (int k = 0; k < kPiece; ++k)
          to[k] = r < from.count && column + k < width ? vector[column + k] : T{};
      }
    }
  }
};

template <class T>
__device__ unsigned packed(float first, float second) {
  return narrowed<T>(first).bits | static_cast<unsigned>(narrowed<T>(second).bits) << 16;
}

/// The vectors of a warp's 16 rows, as left operands.
template <class T, int kWidth>
struct RowVectors {
  MatrixPart part[kWidth / 16];

  template <int kCount>
  __device__ void take(const SharedRows<T, kCount, kWidth>& rows, int row) {
    for (int k = 0; k < kWidth / 16; ++k)
      part[k] = rows.left(row + static_cast<int>(threadIdx.x) / 32 * kWarpRows, k * 16);
  }

  /// Products with the vectors of 8 * kTiles rows of shared memory.
  template <int kTiles, int kCount>
  __device__ void multiply(const SharedRows<T, kCount, kWidth>& columns, int row,
                           float (&products)[kTiles][4]) const {
    for (int n = 0; n < kTiles; ++n)
      for (float& product : products[n]) product = 0;
    for (int n = 0; n < kTiles; n += 2)
      for (int k = 0; k < kWidth / 16; ++k) {
        const MatrixPart b = columns.transposed_right(row + n * 8, k * 16);
        add_product<T>(products[n], part[k], b.pair[0], b.pair[1]);
        add_product<T>(products[n + 1], part[k], b.pair[2], b.pair[3]);
      }
  }
};

/// Of 16 rows, one vector each.
template <class T, int kWidth>
struct RowSums {
  float value[kWidth / 8][4] = {};

  /// Adds the vectors of 8 * kTiles rows of shared memory, by their weights.
  template <int kTiles, int kCount>
  __device__ void add(const float (&weights)[kTiles][4], const SharedRows<T, kCount, kWidth>& columns,
                      int row) {
    for (int k = 0; k < kTiles; k += 2) {
      const MatrixPart a{{packed<T>(weights[k][0], weights[k][1]), packed<T>(weights[k][2], weights[k][3]),
                          packed<T>(weights[k + 1][0], weights[k + 1][1]),
                          packed<T>(weights[k + 1][2], weights[k + 1][3])}};
      for (int n = 0; n < kWidth / 8; n += 2) {
        const MatrixPart b = columns.right(row + k * 8, n * 8);
        add_product<T>(value[n], a, b.pair[0], b.pair[1]);
        add_product<T>(value[n + 1], a, b.pair[2], b.pair[3]);
      }
    }
  }

  __device__ void scale(const float (&factors)[2]) {
    for (auto& tile : value)
      for (int c = 0; c < 4; ++c) tile[c] *= factors[c / 2];
  }

  /// From or to global memory; `rows` begins at the block's first.
  __device__ void resume(const Vectors<const T>& rows, std::int64_t width) {
    each(rows, width, [](float& sum, const T& element) { sum = widened(element); });
  }
  __device__ void store(const Vectors<T>& rows, std::int64_t width) {
    each(rows, width, [](float sum, T& element) { element = narrowed<T>(sum); });
  }

 private:
  template <class Element, class Body>
  __device__ void each(const Vectors<Element>& rows, std::int64_t width, Body body) {
    for (int n = 0; n < kWidth / 8; ++n)
      for (int c = 0; c < 4; ++c) {
        const int row = row_of_lane() + c / 2 * 8, column = n * 8 + column_of_lane() + c % 2;
        if (row < rows.count && column < width) body(value[n][c], rows.data[row * rows.stride + column]);
      }
  }
};

}  // namespace alpa
