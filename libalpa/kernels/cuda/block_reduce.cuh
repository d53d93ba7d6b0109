#pragma once
#include "libalpa/kernels/cuda/cuda_kernel.cuh"

namespace alpa {

struct Sum {
  template <class Value>
  __device__ Value operator()(Value x, Value y) const {
    return x + y;
  }
};

struct Maximum {
  __device__ float operator()(float x, float y) const { return y > x ? y : x; }
};

/// The values of kLanes neighbouring lanes combined, the same on each of them. All lanes of a warp take part.
template <int kLanes, class Value, class Combine>
__device__ Value reduce_lanes(Value value, Combine combine) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
  return value;
}

/// The values of all threads of a block combined, the same on each of them, in an order that depends on the
/// size of the block alone. Every thread of the block takes part; the block is whole warps.
template <class Value, class Combine>
__device__ Value block_reduce(Value value, Combine combine) {
  constexpr int warp = 32, most_warps = 32;
  __shared__ Value partial[most_warps];
  value = reduce_lanes<warp>(value, combine);
  if (blockDim.x == warp) return value;
  if (threadIdx.x % warp == 0) partial[threadIdx.x / warp] = value;
  __syncthreads();
  value = partial[0];
  for (unsigned w = 1; w < blockDim.x / warp; ++w) value = combine(value, partial[w]);
  __syncthreads();  // before a next call writes to `partial`
  return value;
}

/// The sum of term(i) over i in [0, count), on every thread of the block.
template <class Value, class Term>
__device__ Value block_sum(std::int64_t count, Term term) {
  Value sum = 0;
  for_block(count, [&](std::int64_t i) { sum += term(i); });
  return block_reduce(sum, Sum{});
}

}  // namespace alpa
