#pragma once
#include <limits>

#include "libalpa/kernels/cuda/cuda_kernel.cuh"

namespace alpa {

// Threads that move 16 bytes at a time, the most that one instruction takes, reach the memory's bandwidth;
// with an element of 2 bytes at a time they are limited by how many instructions they can issue.

/// Elements that a thread moves at a time where tensors of these types lie side by side.
template <class... T>
inline constexpr int kVector = 16 / static_cast<int>(std::max({sizeof(T)...}));

/// Neighbouring elements, widened.
template <int N>
struct Floats {
  float at[N];
};

template <class T, int N>
struct alignas(N * sizeof(T)) StoredVector {
  T at[N];
};

template <int N, class T>
__device__ Floats<N> load(const T* x) {
  const StoredVector<T, N> stored = *reinterpret_cast<const StoredVector<T, N>*>(x);
  Floats<N> values;
  for (int k = 0; k < N; ++k) values.at[k] = widened(stored.at[k]);
  return values;
}

template <int N, class T>
__device__ void store(T* x, const Floats<N>& values) {
  StoredVector<T, N> stored;
  for (int k = 0; k < N; ++k) stored.at[k] = narrowed<T>(values.at[k]);
  *reinterpret_cast<StoredVector<T, N>*>(x) = stored;
}

/// f of each element, and of those of the others beside it.
template <class Function, int N, class... Others>
__device__ Floats<N> each(Function f, const Floats<N>& x, const Others&... others) {
  Floats<N> y;
  for (int k = 0; k < N; ++k) y.at[k] = f(x.at[k], others.at[k]...);
  return y;
}

inline constexpr std::int64_t kNoVectors = std::numeric_limits<std::int64_t>::max();

/// How many elements lie before the first from which on all these tensors can be read in vectors.
template <int N, class T, class... Others>
__device__ std::int64_t before_vectors(const T* x, const Others*... others) {
  const auto place = [](const auto* p) { return reinterpret_cast<std::uintptr_t>(p) / sizeof(*p) % N; };
  const bool side_by_side = ((place(others) == place(x)) && ...);
  return side_by_side ? static_cast<std::int64_t>((N - place(x)) % N) : kNoVectors;
}

/// Whether the rows of these matrices all begin where vectors do, and end there.
template <int N, class... T>
__device__ bool rows_are_vectors(std::int64_t width, const T*... x) {
  return width % N == 0 && before_vectors<N>(x...) == 0;
}

/// Which of a range of elements or vectors are a thread's.
struct ThreadShare {
  std::int64_t first, stride;
};
__device__ inline ThreadShare share_of_grid() {
  return {std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, std::int64_t{gridDim.x} * blockDim.x};
}
__device__ inline ThreadShare share_of_block() { return {threadIdx.x, blockDim.x}; }

/// body(i, n) for this thread's share of the elements [0, count): elements i to i + n - 1 at a time, n being
/// a constant, N from element `head` on as long as that many are left, and 1 for the others.
template <int N, class Body>
__device__ void for_vectors(ThreadShare share, std::int64_t count, std::int64_t head, Body body) {
  head = head < count ? head : count;
  const std::int64_t vectors = (count - head) / N, others = count - vectors * N;
  for (std::int64_t i = share.first; i < vectors; i += share.stride)
    body(head + i * N, std::integral_constant<int, N>{});
  for (std::int64_t i = share.first; i < others; i += share.stride)
    body(i < head ? i : i + vectors * N, std::integral_constant<int, 1>{});
}

/// Blocks for kernels that go over elements by for_vectors<N>(share_of_grid(), ...).
template <int N>
dim3 grid_for_vectors(std::int64_t elements) {
  return grid_for((elements + N - 1) / N);
}

/// Threads of a block that goes over one row by for_vectors<N>(share_of_block(), ...).
template <int N>
int threads_for_row(std::int64_t width) {
  constexpr std::int64_t warp = 32, most = 512;
  return static_cast<int>(std::clamp((width + N * warp - 1) / (N * warp) * warp, warp, most));
}

}  // namespace alpa
