#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// The first `width` elements of rows of one tensor to rows of another.
template <class T>
__global__ void copy_row_elements(std::int64_t count, std::int64_t width, const T* from,
                                  std::int64_t from_stride, T* to, std::int64_t to_stride) {
  for_elements(count * width, [=](std::int64_t i) {
    to[i / width * to_stride + i % width] = from[i / width * from_stride + i % width];
  });
}

template <class T>
void copy_rows(cudaStream_t stream, const Rows& rows, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride) {
  launch(stream, grid_for(rows.count * rows.width), kThreads, copy_row_elements<T>, rows.count, rows.width,
         from, from_stride, to, to_stride);
}

/// A row's elements from `begin` on are those of a part, the others 0.
template <class T>
__global__ void widen_rows(std::int64_t count, std::int64_t width, const T* part, std::int64_t part_width,
                           std::int64_t begin, T* to) {
  for_elements(count * width, [=](std::int64_t i) {
    const std::int64_t column = i % width - begin;
    to[i] = column < 0 || column >= part_width ? narrowed<T>(0.0f) : part[i / width * part_width + column];
  });
}

}  // namespace

std::unique_ptr<Kernel> concat_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const Rows x = rows_of(shape.operands[0]), y = rows_of(shape.operands[1]), both = rows_of(shape.results[0]);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      T* to = call.result<T>(0);
      copy_rows(stream, x, call.operand<T>(0), x.width, to, both.width);
      copy_rows(stream, y, call.operand<T>(1), y.width, to + x.width, both.width);
    });
  });
}

std::unique_ptr<Kernel> slice_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Rows whole = rows_of(shape.operands[0]), part = rows_of(shape.results[0]);
  const std::int64_t begin = shape.attributes.integer("begin");
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      copy_rows(stream, part, call.operand<T>(0) + begin, whole.width, call.result<T>(0), part.width);
    });
  });
}

std::unique_ptr<Kernel> slice_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Rows part = rows_of(shape.operands[0]), whole = rows_of(shape.results[0]);
  const std::int64_t begin = shape.attributes.integer("begin");
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(whole.count * whole.width), kThreads, widen_rows<T>, whole.count, whole.width,
             call.operand<T>(0), part.width, begin, call.result<T>(0));
    });
  });
}

}  // namespace alpa::ops
