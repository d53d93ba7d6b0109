#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "libalpa/base/bfloat16.h"
#include "libalpa/kernels/attention_extents.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/attention_scratch.h"

namespace alpa {

/// A block of rows of one head: `count` rows of `width` elements, `stride` apart.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride, count;
};

template <class T>
HeadRows<T> head_rows(T* tensor, std::int64_t batch, std::int64_t rows, std::int64_t heads,
                      std::int64_t width, std::int64_t head, std::int64_t first, std::int64_t most) {
  return {tensor + ((batch * rows + first) * heads + head) * width, heads * width,
          std::min(most, rows - first)};
}

/// The block in f32: itself, or converted into `buffer`.
inline HeadRows<const float> in_f32(HeadRows<const float> block, std::int64_t, float*) { return block; }
inline HeadRows<const float> in_f32(HeadRows<const Bfloat16> block, std::int64_t width, float* buffer) {
  run_vectorized(best_instruction_set(), 0, block.count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      round_numbers(block.data + r * block.stride, width, buffer + r * width);
  });
  return {buffer, width, block.count};
}

/// The block in the elements that are multiplied: those it has, or f32.
template <class Element, class T>
HeadRows<const Element> rows_as(HeadRows<const T> block, std::int64_t width, float* buffer) {
  if constexpr (std::is_same_v<Element, T>)
    return block;
  else
    return in_f32(block, width, buffer);
}

/// A tile of scores, in the elements in which it is multiplied once it is softmax or gradient: the tile
/// itself or, in bf16, `buffer`.
template <class Element>
Element* tile_as(float* tile, float* buffer) {
  if constexpr (std::is_same_v<Element, float>)
    return tile;
  else
    return reinterpret_cast<Element*>(buffer);
}

/// body(T{}, Element{}): elements of the tensors, and of what is multiplied.
template <class Body>
std::unique_ptr<Kernel> for_attention_types(DType dtype, Body body) {
  if (dtype == DType::f32) return body(float{}, float{});
  return multiplies_bfloat16() ? body(Bfloat16{}, Bfloat16{}) : body(Bfloat16{}, float{});
}

/// Where sums for the block are kept in f32: in the block itself, or in `buffer`.
inline HeadRows<float> sums_of(HeadRows<float> block, std::int64_t, float*) { return block; }
inline HeadRows<float> sums_of(HeadRows<Bfloat16> block, std::int64_t width, float* buffer) {
  return {buffer, width, block.count};
}

/// A row of a tile of scores to tile_as() of it.
template <class Element>
void round_row(const float* row, Element* to, std::int64_t count) {
  if constexpr (!std::is_same_v<Element, float>) round_numbers(row, count, to);
}

inline void clear(HeadRows<float> block, std::int64_t width) {
  for (std::int64_t r = 0; r < block.count; ++r) std::fill_n(block.data + r * block.stride, width, 0.0f);
}

/// Sums for the block that begin with what it holds.
inline void resume(HeadRows<float>, HeadRows<float>, std::int64_t) {}
inline void resume(HeadRows<float> sums, HeadRows<Bfloat16> block, std::int64_t width) {
  in_f32(HeadRows<const Bfloat16>{block.data, block.stride, block.count}, width, sums.data);
}

/// Rounds sums kept in a buffer to the block.
inline void store(HeadRows<float>, HeadRows<float>, std::int64_t) {}
inline void store(HeadRows<float> sums, HeadRows<Bfloat16> block, std::int64_t width) {
  run_vectorized(best_instruction_set(), 0, block.count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      round_numbers(sums.data + r * sums.stride, width, block.data + r * block.stride);
  });
}

/// Heads in the order in which tasks take them. Threads take consecutive tasks at the same time, and heads
/// that are neighbours lie in neighbouring cache lines, which prefetchers would carry back and forth between
/// the writers: so consecutive tasks get heads that are far apart.
struct HeadPlace {
  std::int64_t batch, head;

  HeadPlace(std::int64_t index, std::int64_t batches, std::int64_t heads) {
    const std::int64_t all = batches * heads, threads = host_threads();
    const std::int64_t at = all % threads == 0 ? index % threads * (all / threads) + index / threads : index;
    batch = at / heads;
    head = at % heads;
  }
};

/// Calls body(task, worker's scratch) for every task, each on whichever worker is free; on one where all
/// tasks together have few flops. Tasks are independent, so the results do not depend on who does what.
template <class Body>
void for_tasks(std::int64_t tasks, std::int64_t flops, const AttentionScratch& scratch, void* workspace,
               const Body& body) {
  if (flops < 2 * kFlopGrain) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, static_cast<float*>(workspace));
    return;
  }
  const std::int64_t workers = std::min({std::int64_t{host_threads()}, scratch.workers, tasks});
  std::atomic<std::int64_t> next{0};
#pragma omp parallel for schedule(static)
  for (std::int64_t w = 0; w < workers; ++w) {
    float* own = static_cast<float*>(workspace) + w * scratch.floats_per_worker();
    for (std::int64_t task = next++; task < tasks; task = next++) body(task, own);
  }
}

}  // namespace alpa
