#include "libalpa/kernels/kernels_cuda.h"
#include "libalpa/kernels/strided_loops.cuh"
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

void copy_box_cuda(Stream& stream, const void* from, const Box& from_box, void* to, const Box& to_box,
                   const Shape& extent, DType dtype) {
  assert(extent.size() == from_box.tensor.size() && extent.size() == to_box.tensor.size());
  const std::int64_t count = element_count(extent);
  if (count == 0) return;
  const std::optional<StridedLoops> loops = strided_loops(copy_loops_of(from_box, to_box, extent));
  assert(loops);
  const std::int64_t bytes = dtype_bytes(dtype);
  copy_along(*loops, count, bytes, static_cast<cudaStream_t>(stream.native()),
             static_cast<const std::byte*>(from) + first_element(from_box) * bytes,
             static_cast<std::byte*>(to) + first_element(to_box) * bytes);
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
