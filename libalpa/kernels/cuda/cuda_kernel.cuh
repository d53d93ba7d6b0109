#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "libalpa/device/cuda_check.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa {

/// A kernel that calls body(KernelCall, cudaStream_t) to queue its work.
template <class Body>
class CudaKernel final : public Kernel {
 public:
  explicit CudaKernel(Body body) : body_(std::move(body)) {}
  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    body_(KernelCall{operands, results, workspace, accumulate, point},
          static_cast<cudaStream_t>(stream.native()));
  }

 private:
  Body body_;
};

template <class Body>
std::unique_ptr<Kernel> cuda_kernel(Body body) {
  return std::make_unique<CudaKernel<Body>>(std::move(body));
}

/// Threads of a block, where nothing asks for another number. A multiple of a warp.
inline constexpr int kThreads = 256;

/// Queues `kernel` on a grid of blocks of `threads` threads; nothing where there are no blocks.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, dim3 blocks, int threads, void (*kernel)(Parameters...),
            Arguments... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), "cudaLaunchKernel");
}

/// A one-dimensional grid of that many blocks.
inline dim3 blocks_of(std::int64_t count) {
  assert(count >= 0 && count <= 0x7FFFFFFF);
  return dim3(static_cast<unsigned>(count));
}

/// Blocks for kernels whose threads go over elements in strides of the grid: for_elements.
inline dim3 grid_for(std::int64_t elements) {
  constexpr std::int64_t enough_for_any_gpu = 8192;
  return blocks_of(std::min((elements + kThreads - 1) / kThreads, enough_for_any_gpu));
}

/// body(i) for the elements i in [0, count) of this thread.
template <class Body>
__device__ void for_elements(std::int64_t count, Body body) {
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) body(i);
}

/// body(i) for i in [0, count), shared out among the threads of a block.
template <class Body>
__device__ void for_block(std::int64_t count, Body body) {
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) body(i);
}

__device__ inline float widened(float value) { return value; }
__device__ inline float widened(Bfloat16 value) { return __bfloat162float(__ushort_as_bfloat16(value.bits)); }
__device__ inline float widened(Float16 value) { return __half2float(__ushort_as_half(value.bits)); }

/// The value as stored, rounded to nearest, ties to even.
template <class T>
__device__ T narrowed(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>)
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  else if constexpr (std::is_same_v<T, Float16>)
    return {__half_as_ushort(__float2half_rn(value))};
  else
    return value;
}

}  // namespace alpa
