#pragma once
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/vector_access.cuh"

namespace alpa {

/// The elements of a row, or of several beside each other, shared out among the threads of a block.
template <int N>
class RowOfVectors {
 public:
  /// `rows`: all that are read or written together.
  template <class... T>
  __device__ explicit RowOfVectors(std::int64_t width, const T*... rows)
      : width_(width), head_(before_vectors<N>(rows...)) {}

  /// f of the elements of the rows, combined, on every thread; `none` where there are none.
  template <class Combine, class Function, class... T>
  __device__ float reduce(float none, Combine combine, Function f, const T*... rows) const {
    float result = none;
    for_vectors<N>(share_of_block(), width_, head_, [&](std::int64_t i, auto n) {
      const auto terms = each(f, load<n>(rows + i)...);
      for (const float term : terms.at) result = combine(result, term);
    });
    return block_reduce(result, combine);
  }

  template <class Function, class... T>
  __device__ float sum(Function f, const T*... rows) const {
    return reduce(0.0f, Sum{}, f, rows...);
  }

  /// y[i] = f(rows[i]...)
  template <class Function, class To, class... T>
  __device__ void map(Function f, To* y, const T*... rows) const {
    for_vectors<N>(share_of_block(), width_, head_,
                   [=](std::int64_t i, auto n) { store(y + i, each(f, load<n>(rows + i)...)); });
  }

 private:
  std::int64_t width_, head_;
};

}  // namespace alpa
