#include <bit>

#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/vector_access.cuh"

namespace alpa::ops {
namespace {

/// `rows` rows of the table from global row `first` on are here.
template <class T>
__global__ void look_up(std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t ids_count,
                        const T* table, const std::int32_t* ids, T* out) {
  constexpr int together = kVector<T>;
  for_vectors<together>(share_of_grid(), ids_count * width,
                        rows_are_vectors<together>(width, table, out) ? 0 : kNoVectors,
                        [=](std::int64_t i, auto n) {
                          const std::int64_t row = ids[i / width] - first;
                          const bool here = row >= 0 && row < rows;
                          store(out + i, here ? load<n>(table + row * width + i % width) : Floats<n.value>{});
                        });
}

// The gradient of the table is summed row by row, by a block with all positions of the row's id. Few rows
// have one: a block looks through the ids once to see which of its rows do.

constexpr int kWarp = 32, kWarps = 8;  // of a block
constexpr int kIdsPerThread = 8, kIdsAtOnce = kWarps * kWarp * kIdsPerThread;
constexpr int kMostRows = 64;  // of a block
constexpr int kSlices = 4;     // of a row's columns, each a vector for every thread of a warp

/// Where this thread's j-th of the ids [start, start + kIdsAtOnce) is; those of a warp are side by side.
__device__ inline std::int64_t place_of_id(std::int64_t start, int j) {
  return start + (threadIdx.x / kWarp * kIdsPerThread + j) * kWarp + threadIdx.x % kWarp;
}

/// body(id, j) for this thread's of the ids [start, start + kIdsAtOnce), -1 from `count` on. All are asked
/// for before the first is used.
template <class Body>
__device__ void for_ids(const std::int32_t* ids, std::int64_t start, std::int64_t count, Body body) {
  std::int32_t own[kIdsPerThread];
  for (int j = 0; j < kIdsPerThread; ++j) {
    const std::int64_t place = place_of_id(start, j);
    own[j] = place < count ? ids[place] : -1;
  }
  for (int j = 0; j < kIdsPerThread; ++j) body(own[j], j);
}

/// The places from `start` on, ascending, at which the ids [start, start + kIdsAtOnce) are `id`. Returns how
/// many.
__device__ inline int find_id(std::int64_t id, const std::int32_t* ids, std::int64_t start,
                              std::int64_t count, int* found) {
  __shared__ int found_by[kWarps];
  const int own_warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  unsigned matches[kIdsPerThread];
  int of_warp = 0;
  for_ids(ids, start, count, [&](std::int32_t other, int j) {
    matches[j] = __ballot_sync(0xFFFFFFFFu, other == id);
    of_warp += __popc(matches[j]);
  });
  if (lane == 0) found_by[own_warp] = of_warp;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < kWarps; ++w) {
    before += w < own_warp ? found_by[w] : 0;
    all += found_by[w];
  }
  for (int j = 0; j < kIdsPerThread; ++j) {
    if (matches[j] >> lane & 1u)
      found[before + __popc(matches[j] & ((1u << lane) - 1))] =
          static_cast<int>(place_of_id(start, j) - start);
    before += __popc(matches[j]);
  }
  __syncthreads();
  return all;
}

/// to[c] = the sum of dy over the positions of `id`, or to[c] + that. The warps take turns at the positions.
template <int N, class T, class Result>
__device__ void sum_positions(std::int64_t id, std::int64_t width, std::int64_t ids_count, const T* dy,
                              const std::int32_t* ids, Result* to, bool add, int* found) {
  __shared__ float of_warps[kWarps][kWarp * N];
  const int own_warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (std::int64_t first = 0; first < width; first += kSlices * kWarp * N) {
    Floats<N> sums[kSlices] = {};
    for (std::int64_t start = 0; start < ids_count; start += kIdsAtOnce) {
      const int count = find_id(id, ids, start, ids_count, found);
      for (int f = own_warp; f < count; f += kWarps) {
        const T* from = dy + (start + found[f]) * width;
        for (int s = 0; s < kSlices; ++s)
          if (const std::int64_t column = first + (s * kWarp + lane) * N; column < width)
            sums[s] = each(Sum{}, sums[s], load<N>(from + column));
      }
      __syncthreads();  // before the next ids overwrite `found`
    }
    for (int s = 0; s < kSlices; ++s) {
      for (int k = 0; k < N; ++k) of_warps[own_warp][lane * N + k] = sums[s].at[k];
      __syncthreads();
      for_block(kWarp * N, [=](std::int64_t c) {
        const std::int64_t column = first + s * kWarp * N + c;
        if (column >= width) return;
        float sum = add ? widened(to[column]) : 0.0f;
        for (int w = 0; w < kWarps; ++w) sum += of_warps[w][c];
        to[column] = narrowed<Result>(sum);
      });
      __syncthreads();  // before the next sums overwrite `of_warps`
    }
  }
}

/// Each block has every gridDim.x-th row of the table, a power of two, as ids that are often met are often
/// neighbours.
template <class T, class Result>
__global__ void sum_by_id(std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t ids_count,
                          const T* dy, const std::int32_t* ids, Result* table, bool add) {
  constexpr int n = kVector<T>;
  __shared__ bool is_met[kMostRows];
  __shared__ int found[kIdsAtOnce];
  if (threadIdx.x < kMostRows) is_met[threadIdx.x] = false;
  __syncthreads();
  for (std::int64_t start = 0; start < ids_count; start += kIdsAtOnce)
    for_ids(ids, start, ids_count, [=](std::int32_t id, int) {
      const std::int64_t row = id - first;
      if (row >= 0 && row < rows && (row & (gridDim.x - 1)) == blockIdx.x) is_met[row / gridDim.x] = true;
    });
  __syncthreads();
  const bool vectors = rows_are_vectors<n>(width, dy);
  for (std::int64_t row = blockIdx.x, r = 0; row < rows; row += gridDim.x, ++r) {
    Result* to = table + row * width;
    if (is_met[r] && vectors)
      sum_positions<n>(first + row, width, ids_count, dy, ids, to, add, found);
    else if (is_met[r])
      sum_positions<1>(first + row, width, ids_count, dy, ids, to, add, found);
    else if (!add)
      for_vectors<kVector<Result>>(share_of_block(), width, before_vectors<kVector<Result>>(to),
                                   [=](std::int64_t i, auto m) { store(to + i, Floats<m.value>{}); });
  }
}

/// Enough to fill any GPU, and enough that none has more than kMostRows rows.
unsigned blocks_by_id(std::int64_t rows) {
  constexpr std::int64_t enough_for_any_gpu = 1024;
  const std::int64_t wanted =
      std::max(std::min(rows, enough_for_any_gpu), (rows + kMostRows - 1) / kMostRows);
  return std::bit_ceil(static_cast<unsigned>(wanted));
}

template <class T, class Result>
std::unique_ptr<Kernel> embedding_grad_kernel(const KernelShape& shape) {
  const std::int64_t rows = shape.results[0].shape[0], width = shape.results[0].shape[1];
  const std::int64_t ids = element_count(shape.operands[1].shape);
  return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
    launch(stream, dim3(blocks_by_id(rows)), kWarps * kWarp, sum_by_id<T, Result>, rows, width,
           origin_of(call.results[0], 0), ids, call.operand<T>(0), call.operand<std::int32_t>(1),
           call.result<Result>(0), call.accumulate);
  });
}

}  // namespace

std::unique_ptr<Kernel> embedding_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ti->t")) return nullptr;
  const std::int64_t rows = shape.operands[0].shape[0], width = shape.operands[0].shape[1];
  const std::int64_t ids = element_count(shape.operands[1].shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for_vectors<kVector<T>>(ids * width), kThreads, look_up<T>, rows, width,
             origin_of(call.operands[0], 0), ids, call.operand<T>(0), call.operand<std::int32_t>(1),
             call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> embedding_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ti->a")) return nullptr;
  const bool wide = shape.results[0].dtype == DType::f32;
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return wide ? embedding_grad_kernel<T, float>(shape) : embedding_grad_kernel<T, T>(shape);
  });
}

}  // namespace alpa::ops
