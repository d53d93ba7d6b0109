#include "libalpa/kernels/cache_extents.h"
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

constexpr int kWarp = 32;

/// A thread writes one number of each token of a sample, in their order.
template <class T>
__global__ void write_rows(CacheExtents e, const T* new_keys, const T* new_values, const std::int32_t* places,
                           T* keys, T* values) {
  const std::int64_t row = e.groups * e.width;
  for_elements(e.samples * row, [=](std::int64_t at) {
    const std::int64_t sample = at / row, number = at % row;
    for (std::int64_t i = 0; i < e.queries; ++i) {
      const std::int64_t token = sample * e.queries + i, place = places[token];
      if (place < 0 || place >= e.places) continue;
      keys[(sample * e.places + place) * row + number] = new_keys[token * row + number];
      values[(sample * e.places + place) * row + number] = new_values[token * row + number];
    }
  });
}

/// A block has one head of one token: a warp the score of a key at a time, then a thread one number of the
/// output over a part of the values. `scores` [block, places].
template <class T>
__global__ void attend_to_cache(CacheExtents e, const T* query, const T* keys, const T* values,
                                const std::int32_t* places, float* scores, T* output) {
  const std::int64_t token = blockIdx.x / e.heads, head = blockIdx.x % e.heads;
  const std::int64_t row = e.groups * e.width;
  const std::int64_t cache = token / e.queries * e.places * row + head / e.share * e.width;
  T* const to = output + (token * e.heads + head) * e.width;
  const std::int64_t seen = places[token] < e.places ? places[token] + std::int64_t{1} : e.places;
  if (seen <= 0) {
    for_block(e.width, [=](std::int64_t d) { to[d] = narrowed<T>(0); });
    return;
  }
  float* const mine = scores + std::int64_t{blockIdx.x} * e.places;
  const T* const from = query + (token * e.heads + head) * e.width;
  float largest = -INFINITY;
  for (std::int64_t t = threadIdx.x / kWarp; t < seen; t += blockDim.x / kWarp) {
    float dot = 0;
    for (std::int64_t d = threadIdx.x % kWarp; d < e.width; d += kWarp)
      dot += widened(from[d]) * widened(keys[cache + t * row + d]);
    dot = reduce_lanes<kWarp>(dot, Sum{}) * e.scale;
    if (threadIdx.x % kWarp == 0) mine[t] = dot;
    largest = Maximum{}(largest, dot);
  }
  largest = block_reduce(largest, Maximum{});
  __syncthreads();
  const float total =
      block_sum<float>(seen, [=](std::int64_t t) { return mine[t] = expf(mine[t] - largest); });
  __syncthreads();
  __shared__ float sums[kThreads];
  const std::int64_t columns = e.width < blockDim.x ? e.width : blockDim.x, parts = blockDim.x / columns;
  for (std::int64_t first = 0; first < e.width; first += columns) {
    const std::int64_t part = threadIdx.x / columns, d = first + threadIdx.x % columns;
    float sum = 0;
    if (part < parts && d < e.width)
      for (std::int64_t t = part; t < seen; t += parts) sum += mine[t] * widened(values[cache + t * row + d]);
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (part == 0 && d < e.width) {
      for (std::int64_t p = 1; p < parts; ++p) sum += sums[p * columns + threadIdx.x];
      to[d] = narrowed<T>(sum / total);
    }
    __syncthreads();
  }
}

template <class T>
__global__ void copy_numbers(std::int64_t count, const T* from, T* to) {
  for_elements(count, [=](std::int64_t i) { to[i] = from[i]; });
}

}  // namespace

std::unique_ptr<Kernel> cached_attention_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ttttti->ttt")) return nullptr;
  const CacheExtents e(shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      const auto* places = call.operand<std::int32_t>(5);
      launch(stream, grid_for(e.samples * e.groups * e.width), kThreads, write_rows<T>, e, call.operand<T>(1),
             call.operand<T>(2), places, call.result<T>(1), call.result<T>(2));
      launch(stream, blocks_of(e.samples * e.queries * e.heads), kThreads, attend_to_cache<T>, e,
             call.operand<T>(0), static_cast<const T*>(call.result<T>(1)),
             static_cast<const T*>(call.result<T>(2)), places, static_cast<float*>(call.workspace),
             call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> store_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return for_float_type(shape.operands[0].dtype, [count = element_count(shape.results[0].shape)](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(count), kThreads, copy_numbers<T>, count, call.operand<T>(1),
             call.result<T>(0));
    });
  });
}

}  // namespace alpa::ops
