#include "libalpa/kernels/cuda/matrix_product_cuda.h"

#include <cublasLt.h>
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::run_time, fmt::format("{} failed: {}", call, cublasLtGetStatusString(status)),
              "set CUBLASLT_LOG_LEVEL=2 to see what cuBLASLt tried");
}

template <auto destroy>
struct Destroy {
  template <class Handle>
  void operator()(Handle* handle) const {
    (void)destroy(handle);
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType data_type(DType dtype) {
  return dtype == DType::f32 ? CUDA_R_32F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

/// One for all products of a device: each would take memory of the GPU and time to start.
cublasLtHandle_t library_of(Device& device) {
  return static_cast<cublasLtHandle_t>(device.product_library([] {
    cublasLtHandle_t handle = nullptr;
    check(cublasLtCreate(&handle), "cublasLtCreate");
    return std::shared_ptr<void>(handle,
                                 [](void* h) { (void)cublasLtDestroy(static_cast<cublasLtHandle_t>(h)); });
  }));
}

Operation make_operation(bool transpose_a, bool transpose_b) {
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Operation operation(description);
  const cublasOperation_t a = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                          b = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const char* call = "cublasLtMatmulDescSetAttribute";
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a), call);
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b), call);
  return operation;
}

/// `rows` x `columns` column-major matrices, `leading` elements from column to column, `batch_stride` from
/// one matrix to the next.
Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t leading,
                   std::int64_t batch, std::int64_t batch_stride) {
  cublasLtMatrixLayout_t description = nullptr;
  check(cublasLtMatrixLayoutCreate(&description, data_type(dtype), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), leading),
        "cublasLtMatrixLayoutCreate");
  Layout layout(description);
  const auto count = static_cast<std::int32_t>(batch);
  const char* call = "cublasLtMatrixLayoutSetAttribute";
  check(
      cublasLtMatrixLayoutSetAttribute(description, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
      call);
  check(cublasLtMatrixLayoutSetAttribute(description, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                         &batch_stride, sizeof batch_stride),
        call);
  return layout;
}

/// A row-major matrix as column-major: its transpose, without moving anything.
Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, const MatrixLayout& layout,
                   std::int64_t batch, std::int64_t batch_stride) {
  if (layout.transposed) return make_layout(dtype, rows, columns, layout.leading, batch, batch_stride);
  return make_layout(dtype, columns, rows, layout.leading, batch, batch_stride);
}

/// Bytes to which every matrix is aligned that lies a multiple of the strides after an address aligned to
/// `first`.
std::uint32_t alignment(const std::vector<ContractionLoop>& loops, std::int64_t ContractionLoop::*stride,
                        DType dtype, std::int64_t first) {
  std::int64_t bits = first;
  for (const ContractionLoop& loop : loops) bits |= loop.*stride * dtype_bytes(dtype);
  return static_cast<std::uint32_t>(bits & -bits);
}

/// Products of cuBLASLt, which knows column-major matrices: it is given result^T = right^T left^T. One batch
/// loop is cuBLASLt's, the others are a list of offsets.
class CublasProduct final : public CudaProduct {
 public:
  CublasProduct(Device& device, MatrixProduct product, DType operands, DType result, std::int64_t alignment)
      : operand_bytes_(dtype_bytes(operands)),
        result_bytes_(dtype_bytes(result)),
        library_(library_of(device)) {
    ContractionLoop inner;
    if (!product.batch.empty()) {
      const auto longest = std::max_element(product.batch.begin(), product.batch.end(),
                                            [](const auto& x, const auto& y) { return x.size < y.size; });
      inner = *longest;
      product.batch.erase(longest);
    }
    outer_ = std::move(product.batch);
    operation_ = make_operation(product.right.transposed, product.left.transposed);
    a_ = make_layout(operands, product.sum, product.columns, product.right, inner.size, inner.right);
    b_ = make_layout(operands, product.rows, product.sum, product.left, inner.size, inner.left);
    c_ = make_layout(result, product.columns, product.rows, product.result_leading, inner.size, inner.result);
    choose_algorithm(operands, result, alignment);
  }

  bool found() const { return found_; }

  void run(void* stream, const void* left, const void* right, void* result, bool accumulate,
           void* workspace) override {
    const float alpha = 1.0f, beta = accumulate ? 1.0f : 0.0f;
    const std::int64_t count = trip_count(outer_);
    for (std::int64_t trip = 0; trip < count; ++trip) {
      const ContractionLoop at = offsets(trip);
      const std::byte* a = static_cast<const std::byte*>(right) + at.right * operand_bytes_;
      const std::byte* b = static_cast<const std::byte*>(left) + at.left * operand_bytes_;
      std::byte* c = static_cast<std::byte*>(result) + at.result * result_bytes_;
      check(cublasLtMatmul(library_, operation_.get(), &alpha, a, a_.get(), b, b_.get(), &beta, c, c_.get(),
                           c, c_.get(), &choice_.algo, workspace, choice_.workspaceSize,
                           static_cast<cudaStream_t>(stream)),
            "cublasLtMatmul");
    }
  }

 private:
  void choose_algorithm(DType operands, DType result, std::int64_t first) {
    cublasLtMatmulPreference_t description = nullptr;
    check(cublasLtMatmulPreferenceCreate(&description), "cublasLtMatmulPreferenceCreate");
    const Preference preference(description);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(description, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::size_t>(kMatrixProductBytes));
    // Sums of pieces are kept in f32 and added in a fixed order.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        alignment(outer_, &ContractionLoop::right, operands, first));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        alignment(outer_, &ContractionLoop::left, operands, first));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        alignment(outer_, &ContractionLoop::result, result, first));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        alignment(outer_, &ContractionLoop::result, result, first));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library_, operation_.get(), a_.get(), b_.get(), c_.get(), c_.get(), description, 1, &choice_, &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "cublasLtMatmulAlgoGetHeuristic");
    found_ = status == CUBLAS_STATUS_SUCCESS && count > 0 && choice_.state == CUBLAS_STATUS_SUCCESS;
  }

  /// Where the matrices of an outer batch element begin, in elements.
  ContractionLoop offsets(std::int64_t trip) const {
    ContractionLoop at;
    for (std::size_t d = outer_.size(); d-- > 0;) {
      const std::int64_t place = trip % outer_[d].size;
      trip /= outer_[d].size;
      at.left += place * outer_[d].left;
      at.right += place * outer_[d].right;
      at.result += place * outer_[d].result;
    }
    return at;
  }

  std::int64_t operand_bytes_, result_bytes_;
  std::vector<ContractionLoop> outer_;
  cublasLtHandle_t library_;
  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t choice_{};
  bool found_ = false;
};

}  // namespace

std::unique_ptr<CudaProduct> make_cuda_product(Device& device, const MatrixProduct& product, DType operands,
                                               DType result, std::int64_t alignment) {
  // Asking the device anything makes it the current one of this thread, for which cuBLASLt is then started.
  (void)device.memory_bytes();
  auto prepared = std::make_unique<CublasProduct>(device, product, operands, result, alignment);
  if (!prepared->found()) return nullptr;
  return prepared;
}

}  // namespace alpa
