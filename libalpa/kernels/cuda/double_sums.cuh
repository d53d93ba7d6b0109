#pragma once
#include <vector>

#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/vector_access.cuh"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa {

/// Tensors that one kernel takes the sums of: most of a model's are so small that a kernel for each would
/// take longer to start than to run.
template <class T>
struct SummedTensors {
  static constexpr int kMost = 64;
  const T* x[kMost];
  std::int64_t count[kMost];
  std::int64_t first[kMost + 1];  ///< stretch; one more at the end of the last tensor
};

/// Each block's sum of f(x[i]) over its stretch of the elements of one of the tensors.
template <class T, class Function>
__global__ void sum_stretches(Function f, SummedTensors<T> tensors, double* partial) {
  constexpr int together = kVector<T>;
  int t = 0;
  while (tensors.first[t + 1] <= blockIdx.x) ++t;
  const std::int64_t count = tensors.count[t], stretches = tensors.first[t + 1] - tensors.first[t],
                     stretch = blockIdx.x - tensors.first[t];
  const std::int64_t begin = count * stretch / stretches, end = count * (stretch + 1) / stretches;
  const T* x = tensors.x[t] + begin;
  double sum = 0;
  for_vectors<together>(share_of_block(), end - begin, before_vectors<together>(x),
                        [&](std::int64_t i, auto n) {
                          const auto values = load<n>(x + i);
                          for (const float value : values.at) sum += f(static_cast<double>(value));
                        });
  sum = block_reduce(sum, Sum{});
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

  /// Takes in f(x) over the elements of tensors, all of type T, from number `index` on. `workspace`, here and
  /// in finish, holds double_sum_bytes.
  template <class T, class Function>
  void take(cudaStream_t stream, std::size_t index, std::span<const Tile> tensors, Function f,
            void* workspace) const {
    constexpr std::size_t most = SummedTensors<T>::kMost;
    for (; !tensors.empty(); tensors = tensors.subspan(std::min(most, tensors.size())), index += most) {
      const std::size_t taken = std::min(most, tensors.size());
      SummedTensors<T> now{};
      for (std::size_t t = 0; t < taken; ++t) {
        now.x[t] = static_cast<const T*>(tensors[t].data);
        now.count[t] = counts_[index + t];
        now.first[t + 1] = first_[index + t + 1] - first_[index];
      }
      launch(stream, blocks_of(now.first[taken]), kThreads, sum_stretches<T, Function>, f, now,
             static_cast<double*>(workspace) + first_[index]);
    }
  }

  /// Once all tensors are taken in: *result = weight * sum, or *result + that.
  void finish(cudaStream_t stream, double weight, float* result, bool add, void* workspace) const {
    constexpr int most_threads = 1024;
    launch(stream, blocks_of(1), most_threads, sum_partial_sums<float>, first_.back(),
           static_cast<const double*>(workspace), weight, result, add);
  }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> first_{0};  ///< [tensor]: its first partial sum; at the end, how many there are
};

}  // namespace alpa
