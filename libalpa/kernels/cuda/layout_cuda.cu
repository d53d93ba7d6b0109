#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/strided_loops.cuh"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

template <class T>
__global__ void copy_strided(StridedLoops loops, std::int64_t count, const T* from, T* to) {
  for_elements(count, [=](std::int64_t i) {
    const StridedLoops::Offsets at = loops.at(i);
    to[at.result] = from[at.left];
  });
}

/// Copies `count` elements of `bytes` bytes each along nested loops, outermost first in the target.
void copy_along(const StridedLoops& loops, std::int64_t count, std::int64_t bytes, cudaStream_t stream,
                const void* from, void* to) {
  const auto copy = [&](auto element) {
    using T = decltype(element);
    launch(stream, grid_for(count), kThreads, copy_strided<T>, loops, count, static_cast<const T*>(from),
           static_cast<T*>(to));
  };
  if (bytes == 2)
    copy(std::uint16_t{});
  else
    copy(std::uint32_t{});
}

}  // namespace

std::unique_ptr<Kernel> make_box_copy_cuda(const Box& from, const Box& to, const Shape& extent, DType dtype) {
  assert(extent.size() == from.tensor.size() && extent.size() == to.tensor.size());
  const std::int64_t count = element_count(extent), bytes = dtype_bytes(dtype);
  const std::optional<StridedLoops> loops = strided_loops(copy_loops_of(from, to, extent));
  assert(loops);
  return cuda_kernel([loops = *loops, count, bytes, from_offset = first_element(from) * bytes,
                      to_offset = first_element(to) * bytes](const KernelCall& call, cudaStream_t stream) {
    copy_along(loops, count, bytes, stream, call.operand<std::byte>(0) + from_offset,
               call.result<std::byte>(0) + to_offset);
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
  return cuda_kernel([loops = *loops, count, bytes = dtype_bytes(shape.operands[0].dtype)](
                         const KernelCall& call, cudaStream_t stream) {
    copy_along(loops, count, bytes, stream, call.operands[0].data, call.results[0].data);
  });
}

}  // namespace alpa
