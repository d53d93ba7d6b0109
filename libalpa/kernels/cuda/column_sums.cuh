#pragma once
#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa {

/// One piece's sums of term(row, column) over its rows, one column per thread. Pieces are the grid's second
/// dimension.
template <class Term>
__global__ void sum_rows_of_piece(Term term, std::int64_t rows, std::int64_t width, float* partial) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const std::int64_t piece = blockIdx.y, pieces = gridDim.y;
  float sum = 0;
  for (std::int64_t row = rows * piece / pieces; row < rows * (piece + 1) / pieces; ++row)
    sum += term(row, column);
  partial[piece * width + column] = sum;
}

template <class T>
__global__ void sum_pieces(const float* partial, std::int64_t pieces, std::int64_t width, T* out, bool add) {
  for_elements(width, [=](std::int64_t column) {
    float sum = add ? widened(out[column]) : 0.0f;
    for (std::int64_t piece = 0; piece < pieces; ++piece) sum += partial[piece * width + column];
    out[column] = narrowed<T>(sum);
  });
}

/// Sums over the rows of a matrix for each of its columns, in an order that depends on its extents alone:
/// first within a fixed number of pieces, then over these.
class DeviceColumnSums {
 public:
  DeviceColumnSums(std::int64_t rows, std::int64_t width)
      : rows_(rows), width_(width), pieces_(column_sum_pieces(rows)) {}

  /// out[c] = sum of term(r, c) over rows r, or out[c] + that. `workspace` holds column_sum_bytes.
  template <class Term, class T>
  void run(cudaStream_t stream, Term term, T* out, bool add, void* workspace) const {
    auto* partial = static_cast<float*>(workspace);
    dim3 grid = blocks_of((width_ + kThreads - 1) / kThreads);
    grid.y = static_cast<unsigned>(pieces_);
    launch(stream, grid, kThreads, sum_rows_of_piece<Term>, term, rows_, width_, partial);
    launch(stream, grid_for(width_), kThreads, sum_pieces<T>, partial, pieces_, width_, out, add);
  }

 private:
  std::int64_t rows_, width_, pieces_;
};

}  // namespace alpa
