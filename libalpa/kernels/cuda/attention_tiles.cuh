#pragma once
#include "libalpa/kernels/cuda/attention_heads.cuh"

namespace alpa {

/// How a block of threads works on a tile of scores, kTileRows x kTileColumns of them.
///
/// Rows are queries and columns keys, or the other way round where the gradient of keys is wanted. Eight
/// neighbouring threads share a row: each has every eighth of its columns, and every eighth element of the
/// vectors that belong to the row. kWidth, the width of a head rounded up, is 32, 64 or 128; what lies beyond
/// the width is 0 in all tiles.
inline constexpr int kTileRows = 16, kTileColumns = 32, kRowThreads = 8;
inline constexpr int kTileThreads = kTileRows * kRowThreads, kColumnsPerThread = kTileColumns / kRowThreads;

/// Rows of vectors in shared memory; the extra column keeps threads that go down a column on different banks.
template <int kRows, int kWidth>
struct VectorTile {
  float element[kRows][kWidth + 1];
  __device__ float* operator[](int row) { return element[row]; }
  __device__ const float* operator[](int row) const { return element[row]; }
};

/// What a tile of scores becomes: the weight of each column for each row.
using ScoreTile = VectorTile<kTileRows, kTileColumns>;

/// The row of this thread, and the j-th of its columns.
__device__ inline int own_row() { return static_cast<int>(threadIdx.x) / kRowThreads; }
__device__ inline int own_column(int j) {
  return static_cast<int>(threadIdx.x) % kRowThreads + j * kRowThreads;
}

/// The part of a row's vector that one thread has.
template <int kWidth>
struct VectorPart {
  static constexpr int kCount = kWidth / kRowThreads;
  float value[kCount] = {};

  __device__ void scale(float factor) {
    for (float& v : value) v *= factor;
  }

  /// Adds the sum of weights[c] * tile[c] over the columns of a tile of scores.
  __device__ void add(const float* weights, const VectorTile<kTileColumns, kWidth>& tile) {
    for (int c = 0; c < kTileColumns; ++c)
      for (int j = 0; j < kCount; ++j) value[j] += weights[c] * tile[c][own_column(j)];
  }

  template <class T>
  __device__ void resume(const T* row, std::int64_t width) {
    for (int j = 0; j < kCount; ++j)
      if (own_column(j) < width) value[j] = widened(row[own_column(j)]);
  }

  template <class T>
  __device__ void store(T* row, std::int64_t width) const {
    for (int j = 0; j < kCount; ++j)
      if (own_column(j) < width) row[own_column(j)] = narrowed<T>(value[j]);
  }
};

/// All threads of a block fill a tile, with zeros where there are no more vectors.
template <int kRows, int kWidth, class T>
__device__ void load(VectorTile<kRows, kWidth>& tile, const Vectors<const T>& from, std::int64_t width) {
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kWidth; i += kTileThreads) {
    const int row = i / kWidth, column = i % kWidth;
    tile[row][column] =
        row < from.count && column < width ? widened(from.data[row * from.stride + column]) : 0.0f;
  }
}

/// The products of this thread's row with its columns.
template <int kWidth>
__device__ void multiply(const VectorTile<kTileRows, kWidth>& rows,
                         const VectorTile<kTileColumns, kWidth>& columns,
                         float (&products)[kColumnsPerThread]) {
  for (float& product : products) product = 0.0f;
  for (int k = 0; k < kWidth; ++k)
    for (int j = 0; j < kColumnsPerThread; ++j) products[j] += rows[own_row()][k] * columns[own_column(j)][k];
}

}  // namespace alpa
