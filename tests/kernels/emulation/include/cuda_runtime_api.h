#pragma once
// The part of CUDA's runtime that kernels are written with, on the host (emulated_grid.h).

enum cudaError { cudaSuccess = 0 };
using cudaError_t = cudaError;
using cudaStream_t = struct CUstream_st*;
