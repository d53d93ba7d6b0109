#include <algorithm>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// Copies the first `width` elements of rows of one tensor to rows of another.
template <class T>
void copy_rows(std::int64_t count, std::int64_t width, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride) {
  for_ranges(count, row_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) std::copy_n(from + r * from_stride, width, to + r * to_stride);
  });
}

}  // namespace

std::unique_ptr<Kernel> concat_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const Rows x = rows_of(shape.operands[0]), y = rows_of(shape.operands[1]), both = rows_of(shape.results[0]);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      T* to = call.result<T>(0);
      copy_rows(x.count, x.width, call.operand<T>(0), x.width, to, both.width);
      copy_rows(y.count, y.width, call.operand<T>(1), y.width, to + x.width, both.width);
    });
  });
}

std::unique_ptr<Kernel> slice_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Rows whole = rows_of(shape.operands[0]), part = rows_of(shape.results[0]);
  const std::int64_t begin = shape.attributes.integer("begin");
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      copy_rows(part.count, part.width, call.operand<T>(0) + begin, whole.width, call.result<T>(0),
                part.width);
    });
  });
}

std::unique_ptr<Kernel> slice_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Rows part = rows_of(shape.operands[0]), whole = rows_of(shape.results[0]);
  const std::int64_t begin = shape.attributes.integer("begin");
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      T* to = call.result<T>(0);
      for_ranges(whole.count * whole.width, kElementGrain,
                 [=](std::int64_t first, std::int64_t end) { std::fill(to + first, to + end, T{}); });
      copy_rows(part.count, part.width, call.operand<T>(0), part.width, to + begin, whole.width);
    });
  });
}

}  // namespace alpa::ops
