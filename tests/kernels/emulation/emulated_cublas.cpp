#include <cublasLt.h>

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include "libalpa/base/float_types.h"
#include "tests/kernels/emulation/emulated_device.h"
#include "tests/kernels/emulation/emulated_stream.h"

namespace {

constexpr std::size_t kWorkspace = 1024;

std::atomic<int> libraries_made = 0;

cublasStatus_t set(void* attribute, std::size_t bytes, const void* value, std::size_t given) {
  if (given != bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// Element (row, column) of a matrix of a batch.
std::int64_t place(const EmulatedLayout& layout, std::int64_t batch, std::int64_t row, std::int64_t column) {
  return batch * layout.batch_stride + column * layout.leading + row;
}

alpa::DType dtype_of(const EmulatedLayout& layout) {
  return layout.type == CUDA_R_32F   ? alpa::DType::f32
         : layout.type == CUDA_R_16F ? alpa::DType::f16
                                     : alpa::DType::bf16;
}

float element(const void* data, const EmulatedLayout& layout, std::int64_t index) {
  return alpa::for_float_type(dtype_of(layout), [&](auto zero) {
    return alpa::to_float(static_cast<const decltype(zero)*>(data)[index]);
  });
}

void store(float value, void* data, const EmulatedLayout& layout, std::int64_t index) {
  alpa::for_float_type(dtype_of(layout), [&](auto zero) {
    static_cast<decltype(zero)*>(data)[index] = alpa::from_float<decltype(zero)>(value);
  });
}

std::uint64_t rows(const EmulatedLayout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.rows : layout.columns;
}
std::uint64_t columns(const EmulatedLayout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.columns : layout.rows;
}

bool fits(const EmulatedOperation& operation, const EmulatedLayout& a, const EmulatedLayout& b,
          const EmulatedLayout& c) {
  for (const EmulatedLayout* layout : {&a, &b, &c})
    if (layout->leading < static_cast<std::int64_t>(layout->rows) || layout->batch != c.batch) return false;
  return a.type == b.type && rows(a, operation.a) == c.rows && columns(b, operation.b) == c.columns &&
         columns(a, operation.a) == rows(b, operation.b);
}

bool is_aligned(const void* data, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// d = factor a b + kept c, c and d laid out alike.
void multiply(const EmulatedOperation& operation, float factor, const void* a, const EmulatedLayout& a_layout,
              const void* b, const EmulatedLayout& b_layout, float kept, const void* c,
              const EmulatedLayout& c_layout, void* d) {
  const auto m = static_cast<std::int64_t>(c_layout.rows), n = static_cast<std::int64_t>(c_layout.columns);
  const auto depth = static_cast<std::int64_t>(columns(a_layout, operation.a));
  for (std::int64_t batch = 0; batch < c_layout.batch; ++batch)
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const std::int64_t in_a =
              operation.a == CUBLAS_OP_N ? place(a_layout, batch, row, k) : place(a_layout, batch, k, row);
          const std::int64_t in_b = operation.b == CUBLAS_OP_N ? place(b_layout, batch, k, column)
                                                               : place(b_layout, batch, column, k);
          sum += static_cast<double>(element(a, a_layout, in_a)) *
                 static_cast<double>(element(b, b_layout, in_b));
        }
        const std::int64_t at = place(c_layout, batch, row, column);
        // As in cuBLAS, what was there is not read where it does not count.
        const float before = kept == 0 ? 0.0f : kept * element(c, c_layout, at);
        store(factor * static_cast<float>(sum) + before, d, c_layout, at);
      }
}

}  // namespace

int alpa::emulation::product_libraries_made() { return libraries_made; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed"
                                               : "not supported";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  ++libraries_made;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t,
                                        cudaDataType scale) {
  *operation = new EmulatedOperation;
  return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  cublasOperation_t& target = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? operation->a : operation->b;
  return set(&target, sizeof target, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *layout = new EmulatedLayout{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    return set(&layout->batch, sizeof layout->batch, value, bytes);
  return set(&layout->batch_stride, sizeof layout->batch_stride, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  std::uint64_t bytes_of_workspace = 0;
  std::uint32_t mask = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(&bytes_of_workspace, sizeof(std::uint64_t), value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(&mask, sizeof mask, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(&preference->alignment_a, 4, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(&preference->alignment_b, 4, value, bytes);
    default:
      return set(&preference->alignment_c, 4, value, bytes);
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* result, int* found) {
  if (c != d || !fits(*operation, *a, *b, *c)) return CUBLAS_STATUS_INVALID_VALUE;
  *result = {{preference->alignment_a, preference->alignment_b, preference->alignment_c},
             kWorkspace,
             CUBLAS_STATUS_SUCCESS};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (workspace_bytes < kWorkspace || !is_aligned(a, algorithm->alignment_a) ||
      !is_aligned(b, algorithm->alignment_b) || !is_aligned(c, algorithm->alignment_c))
    return CUBLAS_STATUS_INVALID_VALUE;
  static std::atomic<std::uint64_t> products = 0;
  const std::uint64_t number = ++products;
  alpa::emulation::queue(stream, [=] { std::memcpy(workspace, &number, sizeof number); });
  alpa::emulation::queue(
      stream, [=, factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta),
               operation = *operation, a_layout = *a_layout, b_layout = *b_layout, c_layout = *c_layout] {
        if (std::memcmp(workspace, &number, sizeof number) != 0)
          throw std::logic_error("what a product keeps in its workspace is overwritten before it is done");
        multiply(operation, factor, a, a_layout, b, b_layout, kept, c, c_layout, d);
      });
  return CUBLAS_STATUS_SUCCESS;
}
