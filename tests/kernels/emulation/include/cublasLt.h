#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda_runtime_api.h"

// The part of cuBLASLt that matrix products are written with, on the host (emulated_cublas.cpp). Descriptions
// that cuBLASLt would refuse are refused here too.

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasLtMatmulDescAttributes_t { CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4 };
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};
enum cublasLtReductionScheme_t { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

struct cublasLtContext {};
struct EmulatedOperation {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct EmulatedLayout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
};
struct EmulatedPreference {
  std::uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256;
};
/// What the matrices of a call must be aligned to.
struct cublasLtMatmulAlgo_t {
  std::uint32_t alignment_a, alignment_b, alignment_c;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
};

using cublasLtHandle_t = cublasLtContext*;
using cublasLtMatmulDesc_t = EmulatedOperation*;
using cublasLtMatrixLayout_t = EmulatedLayout*;
using cublasLtMatmulPreference_t = EmulatedPreference*;

const char* cublasLtGetStatusString(cublasStatus_t);
cublasStatus_t cublasLtCreate(cublasLtHandle_t*);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                                              const void*, std::size_t);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t*, cudaDataType, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
                                                const void*, std::size_t);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t*);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    std::size_t);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t*, int* found);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t, const void* b, cublasLtMatrixLayout_t, const void* beta,
                              const void* c, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t*, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t);
