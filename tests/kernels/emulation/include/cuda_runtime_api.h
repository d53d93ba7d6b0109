#pragma once
// The part of CUDA's runtime that kernels are written with, on the host (emulated_grid.h).

enum cudaError { cudaSuccess = 0 };
using cudaError_t = cudaError;
using cudaStream_t = struct CUstream_st*;

enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75 };
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 9, cudaSuccess; }
