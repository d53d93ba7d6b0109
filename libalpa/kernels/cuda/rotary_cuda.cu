#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

struct RotaryExtents {
  std::int64_t batch, positions, heads, pairs;
};

/// A thread turns one pair of all heads, whose angle is the same. Angles are taken in f64: positions times
/// frequencies need more digits than f32 has. Where there are `places`, these are the positions of the rows.
template <class T>
__global__ void turn(RotaryExtents e, std::int64_t first_position, const std::int32_t* places, double theta,
                     double direction, const T* x, T* y) {
  for_elements(e.batch * e.positions * e.pairs, [=](std::int64_t i) {
    const std::int64_t row = i / e.pairs, pair = i % e.pairs;
    const std::int64_t place = !places           ? first_position + row % e.positions
                               : places[row] < 0 ? 0
                                                 : places[row];
    const auto position = static_cast<double>(place);
    const double angle = position * pow(theta, -static_cast<double>(pair) / static_cast<double>(e.pairs));
    const auto c = static_cast<float>(cos(angle)), s = static_cast<float>(direction * sin(angle));
    for (std::int64_t head = 0; head < e.heads; ++head) {
      const std::int64_t first = (row * e.heads + head) * 2 * e.pairs + pair, second = first + e.pairs;
      const float a = widened(x[first]), b = widened(x[second]);
      y[first] = narrowed<T>(a * c - b * s);
      y[second] = narrowed<T>(a * s + b * c);
    }
  });
}

/// `has_places`: operand 1 has the positions.
std::unique_ptr<Kernel> turning_kernel(const KernelShape& shape, bool has_places) {
  const Shape& extents = shape.operands[0].shape;
  if (extents[3] % 2 != 0) return nullptr;
  const RotaryExtents e{extents[0], extents[1], extents[2], extents[3] / 2};
  const double theta = shape.attributes.number("theta", 10000.0);
  const double direction = !has_places && shape.attributes.integer("inverse", 0) ? -1.0 : 1.0;
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for(e.batch * e.positions * e.pairs), kThreads, turn<T>, e,
             origin_of(call.operands[0], 1), has_places ? call.operand<std::int32_t>(1) : nullptr, theta,
             direction, call.operand<T>(0), call.result<T>(0));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> rotary_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "t->t") ? turning_kernel(shape, false) : nullptr;
}

std::unique_ptr<Kernel> rotary_at_cuda(Device&, const KernelShape& shape) {
  return types_match(shape, "ti->t") ? turning_kernel(shape, true) : nullptr;
}

}  // namespace alpa::ops
