#pragma once
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/vector_access.cuh"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa {

// A Term says what is summed over the rows of a matrix, for each of its columns. It has
//   kSums                        how many sums there are of each column, one or two
//   kColumns                     how many columns a thread takes at a time
//   rows_are_vectors()           whether it can
//   add<N>(row, column, sums)    adds to the sums of N columns from that one on

/// The sums of 32 N columns from `first` on over the rows [begin, end); the sums of one kind lie `distance`
/// apart from those of the next. The warps of the block take turns at the rows; each thread has N columns.
template <int N, class Term>
__device__ void sum_columns(const Term& term, std::int64_t begin, std::int64_t end, std::int64_t first,
                            std::int64_t width, float* partial, std::int64_t distance) {
  constexpr int warp = 32, warps = kThreads / warp;
  __shared__ float of_warps[warps][warp * N];
  const int own_warp = static_cast<int>(threadIdx.x) / warp, lane = static_cast<int>(threadIdx.x) % warp;
  Floats<N> sums[Term::kSums] = {};
  if (const std::int64_t column = first + lane * N; column < width)
    for (std::int64_t row = begin + own_warp; row < end; row += warps)
      term.template add<N>(row, column, sums);
  for (int s = 0; s < Term::kSums; ++s) {
    for (int k = 0; k < N; ++k) of_warps[own_warp][lane * N + k] = sums[s].at[k];
    __syncthreads();
    for_block(warp * N, [=](std::int64_t c) {
      if (first + c >= width) return;
      float sum = 0;
      for (int w = 0; w < warps; ++w) sum += of_warps[w][c];
      partial[s * distance + first + c] = sum;
    });
    __syncthreads();  // before the next sums overwrite `of_warps`
  }
}

/// One piece's sums over its rows. Pieces are the grid's second dimension. A column's sum is the same however
/// many a thread takes.
template <class Term>
__global__ void sum_rows_of_piece(Term term, std::int64_t rows, std::int64_t width, float* partial) {
  constexpr int warp = 32, n = Term::kColumns;
  const std::int64_t piece = blockIdx.y, pieces = gridDim.y;
  const std::int64_t begin = rows * piece / pieces, end = rows * (piece + 1) / pieces,
                     first = std::int64_t{blockIdx.x} * warp * n;
  partial += piece * width;
  if (term.rows_are_vectors())
    sum_columns<n>(term, begin, end, first, width, partial, pieces * width);
  else
    for (std::int64_t from = first; from < first + warp * n && from < width; from += warp)
      sum_columns<1>(term, begin, end, from, width, partial, pieces * width);
}

/// Most warps of a block that sums pieces, which take turns at them.
inline constexpr int kMostPieceWarps = 32;

/// The grid's second dimension are the sums of each column: into `first`, and into `second`.
template <class T>
__global__ void sum_pieces(const float* partial, std::int64_t pieces, std::int64_t width, T* first, T* second,
                           bool add) {
  constexpr unsigned warp = 32;
  __shared__ float of_warps[kMostPieceWarps][warp];
  const unsigned own_warp = threadIdx.x / warp, lane = threadIdx.x % warp, warps = blockDim.x / warp;
  const std::int64_t column = std::int64_t{blockIdx.x} * warp + lane;
  partial += blockIdx.y * pieces * width;
  float sum = 0;
  if (column < width)
    for (std::int64_t piece = own_warp; piece < pieces; piece += warps)
      sum += partial[piece * width + column];
  of_warps[own_warp][lane] = sum;
  __syncthreads();
  if (own_warp > 0 || column >= width) return;
  T* result = blockIdx.y == 0 ? first : second;
  sum = add ? widened(result[column]) : 0.0f;
  for (unsigned w = 0; w < warps; ++w) sum += of_warps[w][lane];
  result[column] = narrowed<T>(sum);
}

/// Sums over the rows of a matrix for each of its columns, in an order that depends on its extents alone:
/// first within a fixed number of pieces, then over these.
class DeviceColumnSums {
 public:
  DeviceColumnSums(std::int64_t rows, std::int64_t width)
      : rows_(rows), width_(width), pieces_(column_sum_pieces(rows)) {}

  /// first[c] = the first sum of column c, or first[c] + that; second[c] likewise where a term has two.
  /// `workspace` holds column_sum_bytes for each of the sums.
  template <class Term, class T>
  void run(cudaStream_t stream, Term term, bool add, void* workspace, T* first, T* second = nullptr) const {
    assert(Term::kSums == (second ? 2 : 1));
    constexpr int warp = 32;
    auto* partial = static_cast<float*>(workspace);
    dim3 grid = blocks_of((width_ + warp * Term::kColumns - 1) / (warp * Term::kColumns));
    grid.y = static_cast<unsigned>(pieces_);
    launch(stream, grid, kThreads, sum_rows_of_piece<Term>, term, rows_, width_, partial);
    grid = blocks_of((width_ + warp - 1) / warp);
    grid.y = Term::kSums;
    const int threads = warp * static_cast<int>(std::min<std::int64_t>(pieces_, kMostPieceWarps));
    launch(stream, grid, threads, sum_pieces<T>, partial, pieces_, width_, first, second, add);
  }

 private:
  std::int64_t rows_, width_, pieces_;
};

}  // namespace alpa
