#pragma once
#include <vector>

#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa {

/// Each block's sum of f(x[i]) over its stretch of the elements.
template <class T, class Function>
__global__ void sum_stretches(Function f, std::int64_t count, const T* x, double* partial) {
  const std::int64_t begin = count * blockIdx.x / gridDim.x,
                     end = count * (blockIdx.x + std::int64_t{1}) / gridDim.x;
  const double sum = block_sum<double>(
      end - begin, [=](std::int64_t i) { return f(static_cast<double>(widened(x[begin + i]))); });
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// *result = weight * (sum of the partial sums), or *result + that. One block. A template because it stands
/// in a header.
template <class Result>
__global__ void sum_partial_sums(std::int64_t count, const double* partial, double weight, Result* result,
                                 bool add) {
  const double sum = block_sum<double>(count, [=](std::int64_t i) { return partial[i]; });
  if (threadIdx.x == 0)
    *result = static_cast<Result>(weight * sum + (add ? static_cast<double>(*result) : 0.0));
}

/// Sums in f64 over all elements of some tensors, in an order that depends on their sizes alone.
class DoubleSums {
 public:
  /// `counts`: elements of each tensor.
  explicit DoubleSums(std::vector<std::int64_t> counts) : counts_(std::move(counts)) {
    for (const std::int64_t count : counts_) first_.push_back(first_.back() + double_sum_stretches(count));
  }

  /// Takes in f(x) over the elements of tensor `index`. `workspace`, here and in finish, holds
  /// double_sum_bytes.
  template <class T, class Function>
  void take(cudaStream_t stream, std::size_t index, const T* x, Function f, void* workspace) const {
    launch(stream, blocks_of(double_sum_stretches(counts_[index])), kThreads, sum_stretches<T, Function>, f,
           counts_[index], x, static_cast<double*>(workspace) + first_[index]);
  }

  /// Once all tensors are taken in: *result = weight * sum, or *result + that.
  void finish(cudaStream_t stream, double weight, float* result, bool add, void* workspace) const {
    launch(stream, blocks_of(1), kThreads, sum_partial_sums<float>, first_.back(),
           static_cast<const double*>(workspace), weight, result, add);
  }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> first_{0};  ///< [tensor]: its first partial sum; at the end, how many there are
};

}  // namespace alpa
