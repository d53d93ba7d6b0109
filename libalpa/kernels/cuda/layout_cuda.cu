#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/strided_loops.cuh"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

template <class T, class S>
__global__ void copy_strided(StridedLoops loops, std::int64_t count, const T* from, S* to) {
  for_elements(count, [=](std::int64_t i) {
    const StridedLoops::Offsets at = loops.at(i);
    if constexpr (std::is_same_v<T, S>)
      to[at.result] = from[at.left];
    else
      to[at.result] = narrowed<S>(widened(from[at.left]));
  });
}

/// Copies `count` elements along nested loops, outermost first in the target.
template <class T, class S>
void copy_along(const StridedLoops& loops, std::int64_t count, cudaStream_t stream, const void* from,
                void* to) {
  launch(stream, grid_for(count), kThreads, copy_strided<T, S>, loops, count, static_cast<const T*>(from),
         static_cast<S*>(to));
}

/// As they are.
void copy_same_along(const StridedLoops& loops, std::int64_t count, DType type, cudaStream_t stream,
                     const void* from, void* to) {
  if (dtype_bytes(type) == 2)
    copy_along<std::uint16_t, std::uint16_t>(loops, count, stream, from, to);
  else
    copy_along<std::uint32_t, std::uint32_t>(loops, count, stream, from, to);
}

}  // namespace

std::unique_ptr<Kernel> make_box_copy_cuda(const Box& from, const Box& to, const Shape& extent,
                                           DType from_type, DType to_type) {
  assert(extent.size() == from.tensor.size() && extent.size() == to.tensor.size());
  const std::int64_t count = element_count(extent);
  const std::optional<StridedLoops> loops = strided_loops(copy_loops_of(from, to, extent));
  assert(loops);
  return cuda_kernel(
      [loops = *loops, count, from_type, to_type, from_offset = first_element(from) * dtype_bytes(from_type),
       to_offset = first_element(to) * dtype_bytes(to_type)](const KernelCall& call, cudaStream_t stream) {
        const void* const source = call.operand<std::byte>(0) + from_offset;
        void* const target = call.result<std::byte>(0) + to_offset;
        if (from_type == to_type) return copy_same_along(loops, count, to_type, stream, source, target);
        for_float_type(from_type, [&](auto zero) {
          for_float_type(to_type, [&](auto other) {
            copy_along<decltype(zero), decltype(other)>(loops, count, stream, source, target);
          });
        });
      });
}

std::unique_ptr<Kernel> ops::rearrange_cuda(Device&, const KernelShape& shape) {
  if (shape.operands.size() != 1 || shape.results.size() != 1 ||
      shape.operands[0].dtype != shape.results[0].dtype)
    return nullptr;
  const ShardingRule rule = rule_of(rearrange, {shape.operands, shape.attributes});
  for (std::size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.reduces(0, static_cast<int>(f))) return nullptr;
  const std::optional<StridedLoops> loops = strided_loops(copy_loops_of(rule));
  if (!loops) return nullptr;
  const std::int64_t count = element_count(shape.results[0].shape);
  return cuda_kernel(
      [loops = *loops, count, type = shape.operands[0].dtype](const KernelCall& call, cudaStream_t stream) {
        copy_same_along(loops, count, type, stream, call.operands[0].data, call.results[0].data);
      });
}

}  // namespace alpa
