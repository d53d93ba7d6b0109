// The functions of cuBLASLt that are called here. They are not linked, but found in the library of the
// machine when first called (SharedLibrary); one that is missing in this list is missing to the linker.
#include <cublasLt.h>
#include <fmt/core.h>

#include "libalpa/device/shared_library_cuda.h"

namespace {

const alpa::SharedLibrary& cublaslt() {
  static const alpa::SharedLibrary library(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR));
  return library;
}

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return cublaslt().call<cublasLtGetStatusString>("cublasLtGetStatusString", status);
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublaslt().call<cublasLtCreate>("cublasLtCreate", handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return cublaslt().call<cublasLtDestroy>("cublasLtDestroy", handle);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return cublaslt().call<cublasLtMatmulDescCreate>("cublasLtMatmulDescCreate", operation, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return cublaslt().call<cublasLtMatmulDescDestroy>("cublasLtMatmulDescDestroy", operation);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  return cublaslt().call<cublasLtMatmulDescSetAttribute>("cublasLtMatmulDescSetAttribute", operation,
                                                         attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return cublaslt().call<cublasLtMatrixLayoutCreate>("cublasLtMatrixLayoutCreate", layout, type, rows,
                                                     columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return cublaslt().call<cublasLtMatrixLayoutDestroy>("cublasLtMatrixLayoutDestroy", layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  return cublaslt().call<cublasLtMatrixLayoutSetAttribute>("cublasLtMatrixLayoutSetAttribute", layout,
                                                           attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return cublaslt().call<cublasLtMatmulPreferenceCreate>("cublasLtMatmulPreferenceCreate", preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return cublaslt().call<cublasLtMatmulPreferenceDestroy>("cublasLtMatmulPreferenceDestroy", preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return cublaslt().call<cublasLtMatmulPreferenceSetAttribute>("cublasLtMatmulPreferenceSetAttribute",
                                                               preference, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  return cublaslt().call<cublasLtMatmulAlgoGetHeuristic>("cublasLtMatmulAlgoGetHeuristic", handle, operation,
                                                         a, b, c, d, preference, wanted, results, found);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  return cublaslt().call<cublasLtMatmul>("cublasLtMatmul", handle, operation, alpha, a, a_layout, b, b_layout,
                                         beta, c, c_layout, d, d_layout, algorithm, workspace,
                                         workspace_bytes, stream);
}
