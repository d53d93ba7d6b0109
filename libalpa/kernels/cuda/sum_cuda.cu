#include "libalpa/kernels/cuda/double_sums.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/vector_access.cuh"

namespace alpa::ops {
namespace {

struct Same {
  __device__ double operator()(double x) const { return x; }
};

struct Square {
  __device__ double operator()(double x) const { return x * x; }
};

template <class T, class S>
__global__ void sum_micro_batches(std::int64_t count, const T* x, S* sum, bool add) {
  constexpr int together = kVector<T, S>;
  for_vectors<together>(share_of_grid(), count, before_vectors<together>(x, sum),
                        [=](std::int64_t i, auto n) {
                          const auto more = load<n>(x + i);
                          store(sum + i, add ? each(Sum{}, load<n>(sum + i), more) : more);
                        });
}

/// S: of the sum.
template <class S>
std::unique_ptr<Kernel> accumulate_kernel(const KernelShape& shape) {
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for_vectors<kVector<T, S>>(count), kThreads, sum_micro_batches<T, S>, count,
             call.operand<T>(0), call.result<S>(0), call.accumulate);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> reduce_sum_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const double weight = shape.attributes.number("weight", 1.0);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([weight, sums = DoubleSums({element_count(shape.operands[0].shape)})](
                           const KernelCall& call, cudaStream_t stream) {
      sums.take<T>(stream, 0, call.operands, Same{}, call.workspace);
      sums.finish(stream, weight, call.result<float>(0), call.accumulate, call.workspace);
    });
  });
}

std::unique_ptr<Kernel> sum_squares_cuda(Device&, const KernelShape& shape) {
  std::vector<std::int64_t> counts;
  for (const TensorType& type : shape.operands) {
    if (type.dtype == DType::i32) return nullptr;
    counts.push_back(element_count(type.shape));
  }
  return cuda_kernel([types = shape.operands, weight = shape.attributes.number("weight", 1.0),
                      sums = DoubleSums(std::move(counts))](const KernelCall& call, cudaStream_t stream) {
    for (std::size_t begin = 0, end = 0; begin < types.size(); begin = end) {
      while (end < types.size() && types[end].dtype == types[begin].dtype) ++end;
      for_float_type(types[begin].dtype, [&](auto zero) {
        sums.take<decltype(zero)>(stream, begin, call.operands.subspan(begin, end - begin), Square{},
                                  call.workspace);
      });
    }
    sums.finish(stream, weight, call.result<float>(0), call.accumulate, call.workspace);
  });
}

std::unique_ptr<Kernel> accumulate_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "t->f") ? accumulate_kernel<float>(shape) : nullptr;
}

std::unique_ptr<Kernel> accumulate_rounded_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->a")) return nullptr;
  return for_float_type(shape.results[0].dtype,
                        [&](auto zero) { return accumulate_kernel<decltype(zero)>(shape); });
}

std::unique_ptr<Kernel> held_back_cuda(Device& device, const KernelShape& shape) {  // a sum of one
  return types_match(shape, "t->t") ? accumulate_rounded_cuda(device, shape) : nullptr;
}

}  // namespace alpa::ops
