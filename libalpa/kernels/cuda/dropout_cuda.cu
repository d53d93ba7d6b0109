#include "libalpa/base/philox.h"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

constexpr int kMostDimensions = 8;

/// Where the elements of a tile lie in the whole tensor.
struct TilePlace {
  int dimensions;
  std::int64_t extents[kMostDimensions], origin[kMostDimensions], whole[kMostDimensions];
};

TilePlace place_of(const Shape& extents, const Tile& tile) {
  TilePlace place{};
  place.dimensions = static_cast<int>(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    place.extents[d] = extents[d];
    place.origin[d] = origin_of(tile, d);
    place.whole[d] = tile.whole.empty() ? extents[d] : tile.whole[d];
  }
  return place;
}

/// `first_sample`: index within the step of sample 0 of the whole tensor.
template <class T>
__global__ void drop(TilePlace place, std::int64_t count, std::uint64_t key, std::uint64_t step,
                     std::uint64_t first_sample, float rate, float scale, const T* x, T* y) {
  for_elements(count, [=](std::int64_t i) {
    // Row-major index within the whole sample.
    std::int64_t rest = i, index = 0, stride = 1;
    for (int d = place.dimensions - 1; d > 0; --d) {
      index += (place.origin[d] + rest % place.extents[d]) * stride;
      rest /= place.extents[d];
      stride *= place.whole[d];
    }
    const std::uint64_t sample = first_sample + static_cast<std::uint64_t>(place.origin[0] + rest);
    const float uniform = philox_uniform_at(key, (step << 32) + sample, static_cast<std::uint64_t>(index));
    y[i] = narrowed<T>(uniform < rate ? 0.0f : widened(x[i]) * scale);
  });
}

}  // namespace

std::unique_ptr<Kernel> dropout_cuda(Device&, const KernelShape& shape) {
  const Shape& extents = shape.operands[0].shape;
  if (!types_match(shape, "t->t") || extents.empty() || extents.size() > kMostDimensions) return nullptr;
  const double rate = shape.attributes.number("rate");
  const auto draws = static_cast<std::uint64_t>(shape.attributes.integer("stream", 0));
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      const std::int64_t count = element_count(extents);
      launch(stream, grid_for(count), kThreads, drop<T>, place_of(extents, call.operands[0]), count,
             philox_key(call.point.seed, draws), static_cast<std::uint64_t>(call.point.step),
             static_cast<std::uint64_t>(call.point.first_sample), static_cast<float>(rate),
             static_cast<float>(1.0 / (1.0 - rate)), call.operand<T>(0), call.result<T>(0));
    });
  });
}

}  // namespace alpa::ops
