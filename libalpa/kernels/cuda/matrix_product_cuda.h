#pragma once
#include <memory>

#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa {

/// A prepared matrix product on a CUDA device. Sums are kept in f32; f32 operands are multiplied in full f32.
class CudaProduct {
 public:
  virtual ~CudaProduct() = default;

  /// Queues result = left * right, or result + that. `left` and `right` are those of the MatrixProduct.
  /// `stream` is a cudaStream_t, `workspace` holds kMatrixProductBytes.
  virtual void run(void* stream, const void* left, const void* right, void* result, bool accumulate,
                   void* workspace) = 0;
};

/// Null where the library has no algorithm for these extents and strides. `alignment` of every call's
/// matrices in bytes, a power of two up to kAlignment. Throws Error(run_time) where it fails.
std::unique_ptr<CudaProduct> make_cuda_product(Device&, const MatrixProduct&, DType operands, DType result,
                                               std::int64_t alignment);

}  // namespace alpa
