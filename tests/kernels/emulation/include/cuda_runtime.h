#pragma once
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "cuda_runtime_api.h"
#include "tests/kernels/emulation/emulated_grid.h"
#include "tests/kernels/emulation/emulated_stream.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)
using dim3 = alpa::emulation::Extent;
using std::isfinite;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  alpa::emulation::note_launch(reinterpret_cast<const void*>(kernel));
  alpa::emulation::queue(config->stream, [kernel, grid = config->gridDim, block = config->blockDim,
                                          of = std::tuple<Parameters...>(arguments...)] {
    alpa::emulation::run_grid(grid, block, [&] { std::apply(kernel, of); });
  });
  return cudaSuccess;
}

using alpa::emulation::blockDim;
using alpa::emulation::blockIdx;
using alpa::emulation::gridDim;
using alpa::emulation::threadIdx;

inline void __syncthreads() { alpa::emulation::wait_for_block(); }

template <class Value>
Value __shfl_xor_sync(unsigned, Value value, int lane_mask) {
  return alpa::emulation::exchange(value, lane_mask);
}

inline unsigned __ballot_sync(unsigned, bool holds) { return alpa::emulation::ballot(holds); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
