#pragma once
#include <vector>

#include "libalpa/kernels/block_reduce.cuh"

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
  DoubleSums(Device& device, std::vector<std::int64_t> counts)
      : counts_(std::move(counts)), scratch_(device.scratch()) {
    for (const std::int64_t count : counts_) first_.push_back(first_.back() + blocks_for(count));
    scratch_.reserve(first_.back() * static_cast<std::int64_t>(sizeof(double)));
  }

  /// Takes in f(x) over the elements of tensor `index`.
  template <class T, class Function>
  void take(cudaStream_t stream, std::size_t index, const T* x, Function f) const {
    launch(stream, blocks_of(blocks_for(counts_[index])), kThreads, sum_stretches<T, Function>, f,
           counts_[index], x, partial() + first_[index]);
  }

  /// Once all tensors are taken in: *result = weight * sum, or *result + that.
  void finish(cudaStream_t stream, double weight, float* result, bool add) const {
    const double* partial_sums = partial();
    launch(stream, blocks_of(1), kThreads, sum_partial_sums<float>, first_.back(), partial_sums, weight,
           result, add);
  }

 private:
  static std::int64_t blocks_for(std::int64_t count) {
    constexpr std::int64_t worth_a_block = 16 * kThreads, most = 512;
    return std::clamp<std::int64_t>(count / worth_a_block, 1, most);
  }
  double* partial() const { return static_cast<double*>(scratch_.data()); }

  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> first_{0};  ///< [tensor]: its first partial sum; at the end, how many there are
  Scratch& scratch_;
};

}  // namespace alpa
