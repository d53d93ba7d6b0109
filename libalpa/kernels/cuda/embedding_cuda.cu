#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// A thread per element of the result; `rows` rows of the table from global row `first` on are here.
template <class T>
__global__ void look_up(std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t ids_count,
                        const T* table, const std::int32_t* ids, T* out) {
  for_elements(ids_count * width, [=](std::int64_t i) {
    const std::int64_t row = ids[i / width] - first;
    out[i] = row >= 0 && row < rows ? table[row * width + i % width] : T{};
  });
}

constexpr int kColumnsPerThread = 4;

/// One row of the table's gradient per block: the sum of dy over the positions of the row's id, in ascending
/// order. The block looks through kThreads ids at a time, and then adds up what it has found, each thread in
/// its columns.
template <class T, class Result>
__global__ void sum_positions(std::int64_t width, std::int64_t first, std::int64_t ids_count, const T* dy,
                              const std::int32_t* ids, Result* table, bool add) {
  constexpr int warp = 32, warps = kThreads / warp;
  __shared__ unsigned found[warps];
  const std::int64_t row = blockIdx.x;
  table += row * width;
  for (std::int64_t columns = 0; columns < width; columns += kColumnsPerThread * kThreads) {
    float sums[kColumnsPerThread] = {};
    const auto for_columns = [&](auto body) {
      for (int j = 0; j < kColumnsPerThread; ++j) {
        const std::int64_t column = columns + j * kThreads + threadIdx.x;
        if (column < width) body(column, sums[j]);
      }
    };
    for_columns([=](std::int64_t column, float& sum) { sum = add ? widened(table[column]) : 0.0f; });
    for (std::int64_t start = 0; start < ids_count; start += kThreads) {
      const std::int64_t mine = start + threadIdx.x;
      const unsigned matches = __ballot_sync(0xFFFFFFFFu, mine < ids_count && ids[mine] == first + row);
      if (threadIdx.x % warp == 0) found[threadIdx.x / warp] = matches;
      __syncthreads();
      for (int w = 0; w < warps; ++w)
        for (unsigned left = found[w]; left != 0; left &= left - 1) {
          const T* from = dy + (start + w * warp + __ffs(static_cast<int>(left)) - 1) * width;
          for_columns([=](std::int64_t column, float& sum) { sum += widened(from[column]); });
        }
      __syncthreads();  // before the next ids overwrite `found`
    }
    for_columns([=](std::int64_t column, float& sum) { table[column] = narrowed<Result>(sum); });
  }
}

template <class T, class Result>
std::unique_ptr<Kernel> embedding_grad_kernel(const KernelShape& shape) {
  const std::int64_t rows = shape.results[0].shape[0], width = shape.results[0].shape[1];
  const std::int64_t ids = element_count(shape.operands[1].shape);
  return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
    launch(stream, blocks_of(rows), kThreads, sum_positions<T, Result>, width, origin_of(call.results[0], 0),
           ids, call.operand<T>(0), call.operand<std::int32_t>(1), call.result<Result>(0), call.accumulate);
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
      launch(stream, grid_for(ids * width), kThreads, look_up<T>, rows, width, origin_of(call.operands[0], 0),
             ids, call.operand<T>(0), call.operand<std::int32_t>(1), call.result<T>(0));
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
