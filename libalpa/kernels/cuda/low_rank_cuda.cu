#include <array>

#include "libalpa/graph/low_rank.h"
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// (first + second) factor as two matrix products: each of the two is read once.
class ProductOfSum final : public Kernel {
 public:
  explicit ProductOfSum(std::unique_ptr<Kernel> product) : product_(std::move(product)) {}

  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool, const RunPoint& point) override {
    for (const std::size_t term : {0, 1})
      product_->run(stream, std::array{operands[term], operands[2]}, results, workspace, term > 0, point);
  }

 private:
  std::unique_ptr<Kernel> product_;
};

__global__ void transpose(std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  for_elements(rows * columns, [=](std::int64_t i) { to[i] = from[i % rows * columns + i / rows]; });
}

/// along[o] = the product of column o and `own`, for that many columns of that many rows, of which each
/// thread reads those that for_block gives it. One block, which meets before `along` is overwritten.
__device__ void multiply_columns(std::int64_t count, std::int64_t rows, const float* columns,
                                 const float* own, double* along) {
  constexpr int warp = 32, most_warps = 32, together = 8;
  __shared__ double of_warps[together][most_warps];
  const unsigned own_warp = threadIdx.x / warp, lane = threadIdx.x % warp, warps = blockDim.x / warp;
  for (std::int64_t first = 0; first < count; first += together) {
    double sums[together] = {};
    for_block(rows, [&](std::int64_t row) {
      for (int o = 0; o < together; ++o)
        if (first + o < count)
          sums[o] += static_cast<double>(columns[(first + o) * rows + row]) * static_cast<double>(own[row]);
    });
    for (int o = 0; o < together; ++o) {
      const double sum = reduce_lanes<warp>(sums[o], Sum{});
      if (lane == 0) of_warps[o][own_warp] = sum;
    }
    __syncthreads();
    for (unsigned o = own_warp; o < together; o += warps) {
      const double sum = reduce_lanes<warp>(lane < warps ? of_warps[o][lane] : 0.0, Sum{});
      if (lane == 0 && first + o < count) along[first + o] = sum;
    }
    __syncthreads();
  }
}

constexpr int kMostColumnThreads = 1024;

/// Of a block that goes over one column after another: as few whole warps as have four rows of it a thread.
int threads_for_column(std::int64_t rows) {
  constexpr std::int64_t warp = 32;
  return static_cast<int>(
      std::clamp<std::int64_t>((rows + 4 * warp - 1) / (4 * warp) * warp, warp, kMostColumnThreads));
}

/// As on CPUs: Gram-Schmidt, each column twice, in f64. `columns`, one after another, become orthonormal;
/// `along` has room for one element of each. One block, of which a thread has the same rows all the time.
__global__ void __launch_bounds__(kMostColumnThreads)
    make_orthonormal(std::int64_t rows, std::int64_t rank, float* columns, double* along) {
  for (std::int64_t column = 0; column < rank; ++column) {
    float* const own = columns + column * rows;
    const auto length = [=] {
      multiply_columns(1, rows, own, own, along);
      return sqrt(along[0]);
    };
    const double before = length();
    for (int pass = 0; pass < 2; ++pass) {
      multiply_columns(column, rows, columns, own, along);
      for_block(rows, [=](std::int64_t row) {
        double sum = 0;
        for (std::int64_t other = 0; other < column; ++other)
          sum += along[other] * static_cast<double>(columns[other * rows + row]);
        own[row] = static_cast<float>(static_cast<double>(own[row]) - sum);
      });
    }
    const double left = length();
    const double scale = left > kLeastOfColumn * before ? 1 / left : 0;
    for_block(rows, [=](std::int64_t row) {
      own[row] = static_cast<float>(static_cast<double>(own[row]) * scale);
    });
  }
}

constexpr int kTile = 32;  ///< rows and columns of a block

/// error += gradient - left right^T. Each warp of a block takes every eighth row of its tile.
__global__ void feed_back(std::int64_t rows, std::int64_t columns, std::int64_t rank, const float* gradient,
                          const float* right, const float* left, float* error) {
  constexpr int warps = kThreads / kTile, own_rows = kTile / warps;
  __shared__ float of_rows[kTile][kTile + 1], of_columns[kTile][kTile + 1];  // + 1: no two lanes at one bank
  const std::int64_t across = (columns + kTile - 1) / kTile, first_row = blockIdx.x / across * kTile,
                     first_column = blockIdx.x % across * kTile;
  const int lane = static_cast<int>(threadIdx.x) % kTile, own_warp = static_cast<int>(threadIdx.x) / kTile;
  float sums[own_rows] = {};
  for (std::int64_t first = 0; first < rank; first += kTile) {
    const std::int64_t factors = rank - first < kTile ? rank - first : kTile;
    for_block(kTile * factors, [=](std::int64_t i) {
      const std::int64_t at = i / factors, k = i % factors;
      of_rows[at][k] = first_row + at < rows ? left[(first_row + at) * rank + first + k] : 0.0f;
      of_columns[at][k] = first_column + at < columns ? right[(first_column + at) * rank + first + k] : 0.0f;
    });
    __syncthreads();
    for (std::int64_t k = 0; k < factors; ++k)
      for (int r = 0; r < own_rows; ++r) sums[r] += of_rows[own_warp + r * warps][k] * of_columns[lane][k];
    __syncthreads();  // before the next factors overwrite these
  }
  if (first_column + lane >= columns) return;
  for (int r = 0; r < own_rows; ++r) {
    const std::int64_t row = first_row + own_warp + r * warps;
    if (row >= rows) return;
    const std::int64_t i = row * columns + first_column + lane;
    error[i] += gradient[i] - sums[r];
  }
}

/// A block for each column.
__global__ void renew_columns(std::int64_t rows, std::int64_t rank, const float* made, float* factor) {
  made += blockIdx.x;
  factor += blockIdx.x;
  const int others_than_zero =
      block_sum<int>(rows, [=](std::int64_t row) { return made[row * rank] != 0 ? 1 : 0; });
  if (others_than_zero > 0) for_block(rows, [=](std::int64_t row) { factor[row * rank] = made[row * rank]; });
}

LowRankExtents extents_of(const KernelShape& shape) {
  return {shape.operands[0].shape, shape.attributes.integer("rows")};
}

}  // namespace

std::unique_ptr<Kernel> low_rank_product_cuda(Device& device, const KernelShape& shape) {
  if (!types_match(shape, "fff->f")) return nullptr;
  const bool transposed = shape.attributes.integer("transposed", 0) != 0;
  const auto [rows, columns] = extents_of(shape);
  const std::int64_t rank = shape.operands[2].shape.back();
  const auto matrix = [](std::int64_t of_rows, std::int64_t of_columns) {
    return TensorType{DType::f32, {of_rows, of_columns}};
  };
  const KernelShape one{{matrix(rows, columns), matrix(transposed ? rows : columns, rank)},
                        {matrix(transposed ? columns : rows, rank)},
                        {{"equation", transposed ? "m n, m k -> n k" : "m n, n k -> m k"}}};
  std::unique_ptr<Kernel> product = einsum_cuda(device, one);
  return product ? std::make_unique<ProductOfSum>(std::move(product)) : nullptr;
}

std::unique_ptr<Kernel> orthonormal_columns_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "f->f")) return nullptr;
  const Rows of = rows_of(shape.operands[0]);
  return cuda_kernel([rows = of.count, rank = of.width](const KernelCall& call, cudaStream_t stream) {
    auto* along = static_cast<double*>(call.workspace);
    auto* columns = reinterpret_cast<float*>(along + rank);
    launch(stream, grid_for(rows * rank), kThreads, transpose, rows, rank, call.operand<float>(0), columns);
    launch(stream, blocks_of(1), threads_for_column(rows), make_orthonormal, rows, rank, columns, along);
    launch(stream, grid_for(rows * rank), kThreads, transpose, rank, rows, columns, call.result<float>(0));
  });
}

std::unique_ptr<Kernel> error_feedback_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ffff->f")) return nullptr;
  const auto [rows, columns] = extents_of(shape);
  const std::int64_t rank = shape.operands[2].shape.back();
  return cuda_kernel([rows = rows, columns = columns, rank](const KernelCall& call, cudaStream_t stream) {
    launch(stream, blocks_of((rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile)), kThreads,
           feed_back, rows, columns, rank, call.operand<float>(1), call.operand<float>(2),
           call.operand<float>(3), call.result<float>(0));
  });
}

std::unique_ptr<Kernel> renewed_columns_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ff->f")) return nullptr;
  const Rows of = rows_of(shape.operands[0]);
  return cuda_kernel([rows = of.count, rank = of.width](const KernelCall& call, cudaStream_t stream) {
    launch(stream, blocks_of(rank), kThreads, renew_columns, rows, rank, call.operand<float>(1),
           call.result<float>(0));
  });
}

}  // namespace alpa::ops
