#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/matrix_product_cuda.h"
#include "libalpa/kernels/cuda/strided_loops.cuh"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// One thread per element of the result: the way of contractions that are no matrix product.
template <class T, class Result>
__global__ void contract(StridedLoops elements, std::int64_t count, StridedLoops sums, std::int64_t terms,
                         const T* left, const T* right, Result* result, bool add) {
  for_elements(count, [=](std::int64_t i) {
    const StridedLoops::Offsets at = elements.at(i);
    float sum = 0;
    for (std::int64_t k = 0; k < terms; ++k) {
      const StridedLoops::Offsets term = sums.at(k);
      sum += widened(left[at.left + term.left]) * widened(right[at.right + term.right]);
    }
    result[at.result] = narrowed<Result>(sum + (add ? widened(result[at.result]) : 0.0f));
  });
}

template <class T, class Result>
std::unique_ptr<Kernel> contraction_kernel(const Contraction& contraction) {
  std::vector<ContractionLoop> loops = contraction.batch;
  loops.insert(loops.end(), contraction.rows.begin(), contraction.rows.end());
  loops.insert(loops.end(), contraction.columns.begin(), contraction.columns.end());
  const auto elements = strided_loops(loops), sums = strided_loops(contraction.sums);
  if (!elements || !sums) return nullptr;
  return cuda_kernel([elements = *elements, count = trip_count(loops), sums = *sums,
                      terms = trip_count(contraction.sums)](const KernelCall& call, cudaStream_t stream) {
    launch(stream, grid_for(count), kThreads, contract<T, Result>, elements, count, sums, terms,
           call.operand<T>(0), call.operand<T>(1), call.result<Result>(0), call.accumulate);
  });
}

}  // namespace

std::unique_ptr<Kernel> einsum_cuda(Device& device, const KernelShape& shape) {
  if (!types_match(shape, "tt->a")) return nullptr;
  const Contraction contraction = contraction_of(rule_of(einsum, {shape.operands, shape.attributes}));
  const DType operands = shape.operands[0].dtype, result = shape.results[0].dtype;
  if (const auto product = matrix_product_of(contraction))
    if (auto prepared = make_cuda_product(device, *product, operands, result, shape.alignment))
      return cuda_kernel([prepared = std::move(prepared), swapped = product->swapped](const KernelCall& call,
                                                                                      cudaStream_t stream) {
        prepared->run(stream, call.operands[swapped ? 1 : 0].data, call.operands[swapped ? 0 : 1].data,
                      call.results[0].data, call.accumulate, call.workspace);
      });
  return for_float_type(operands, [&](auto zero) {
    using T = decltype(zero);
    return result == DType::f32 ? contraction_kernel<T, float>(contraction)
                                : contraction_kernel<T, T>(contraction);
  });
}

}  // namespace alpa::ops
